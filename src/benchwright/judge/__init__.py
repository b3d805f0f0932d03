"""A judge maps items to the kinds of work that they resemble; activities are worth what workers say."""
