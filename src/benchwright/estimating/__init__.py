"""From a panel to item statistics: noise, slopes, quality, ranks, each with its uncertainty."""
