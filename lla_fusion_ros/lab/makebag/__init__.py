"""Bags with a known truth: tracks of any data set, or a drive through the sign world."""
