"""All fitted constants of finding. `python -m benchmarks.retrieval --ablate` measures what each gains."""

# A conversation's score: its score by words, times the share of the request that the best one holds, and
TITLE = 0.5  # for a title that holds a whole wording, less for one that holds a part of it
MODEL = 0.6  # for messages whose similarity lies FAR standard deviations above the mean of all, less below
FAR = 4.0

# A message's score: the weights of the terms in it, and
NEIGHBOUR = 0.3  # of its neighbours' scores, a third of that two places away
DATE = 0.5  # of the best score, if it was said on a date that the request names

# Confidence: the share of the request that the conversation holds, and how far it leads the next one
HIGH, HIGH_LEAD = 0.8, 0.2
MEDIUM, MEDIUM_LEAD = 0.65, 0.15
SURE_WORDS = 5.0  # of three wordings and more, each word as rare as can be; fewer only share the subject
# Nothing is answered below this score, with the model, by which all messages score; nor, of several wordings, by a
# conversation that holds fewer words than these, each as rare as can be
FLOOR_MODEL = 0.4
RARE_WORDS = 2.0
