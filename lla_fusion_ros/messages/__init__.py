"""The messages of the ROS contract as CDR bytes: what travels over DDS and lies in a bag, without ROS.

The live nodes and the offline replay read and write these same bytes, so their outputs agree by construction.
"""
