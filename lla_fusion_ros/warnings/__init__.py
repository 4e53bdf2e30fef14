"""Warnings: is this object something the networks know, and do its views belong together?"""
