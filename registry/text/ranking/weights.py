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
# Nothing is answered if a conversation's score, plus RARE_WORD for each word of maximal rarity, is below the sum of
MODEL_FLOOR = 0.4  # if the model is used: it gives any conversation a score
WORDINGS_FLOOR = 0.7  # if there are several wordings: one of them shares words with any conversation
RARE_WORD = 0.2
