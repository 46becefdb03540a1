"""All fitted constants of search. `python -m benchmarks.retrieval --ablate` measures the gain of each."""

# A conversation's score is its score by words, times the best conversation's share of the request, plus
TITLE = 0.5  # for a title that contains a whole wording; proportionally less for a part of it
MODEL = 0.6  # for messages whose similarity is FAR standard deviations above the mean; proportionally less below
FAR = 4.0

# A message's score is the weight of its terms, plus
NEIGHBOUR = 0.3  # times the scores of the two neighbours; a third of that for those two positions away
DATE = 0.5  # times the best score, if its date is in the request

# Thresholds of confidence: the conversation's share of the request, and its lead over the next one
HIGH, HIGH_LEAD = 0.8, 0.2
MEDIUM, MEDIUM_LEAD = 0.65, 0.15
# With three or more wordings: matched weight, in words of maximal rarity. Below, only the subject is the same.
SURE_WORDS = 5.0
# Nothing is answered below this score of a conversation: by one wording and words only; if the model is used, or there
# are several wordings; if both
FLOORS = (0.0, 0.4, 0.72)
