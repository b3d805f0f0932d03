"""The ranking game: is a ranking worth gaming, and how much common tuning before the test stops it?"""
