"""Notes on each data set for the page on accuracy: what was tried, and what probably limits the results.

Markdown, one entry per data set, which may be empty. Numbers belong in the JSON files, not here.
"""

NOTES: dict[str, str] = {
    "mnist": """Compared on the last 10,000 training images: 2,000 to 6,000 landmarks, penalties and widths of the kernel,
forests of fewer trees with more pairs each (better than more trees with fewer), a refilled forest, and an ensemble with the
cosine of the class scores, which is better at the lowest FPR only. More landmarks would still help, but the time grows with
the square of their number. LightGBM drops at an FPR of 0.0001: leaves with few pairs and extreme values rank some hundred
pairs highest, about as many different as same. Boosting along Fisher directions was run later than the other models, beside
programs that took most of the time, so its seconds say nothing. The test images are the same in all splits, so standard
deviations reflect pairs and random seeds only.""",
    "mnist_boosting": "",
    "keystroke": """Compared on the training people: cosines of whitened quantiles with and without landmarks, forests on raw
features, on quantiles and on whitened quantiles, refilled forests, the likelihood ratio, and ensembles of two to five of
these. Which single model is best varies between groups of people: quantiles help for most people, but they bound values
outside the training range, and for people with such values only the forest on raw features is good. The ensemble is better
than each of its members on every group. The ensemble of two forests was reported first; the likelihood ratio was added
later, for speakers, and the ensemble with it was again chosen on the training people. The default shrinkage of
`WithinClassWhitening`, which the second forest uses, was originally chosen with test people of splits 0 and 1 in view;
compared again on the training people alone, 0.03, 0.1 and 0.3 differ less than groups of people do, and 0.1 was kept.
Boosted peers were tuned on the features f; on all coordinates, LightGBM has 100 rounds. SimilarityBoosting was run again after
its penalty for the same pairs had been lowered; its setting, which fresh pairs share, was then searched for again on the same
pairs. AutoSimilarity was run again after `NuisanceCentering` had been
added, which was chosen on the training people of split 0, and once more when it stored one clustering instead of ten, so that
a model file discloses no sample. At an FPR of 0.001 the 21 test people decide: its TPR is between 0.15 and 0.39 by split.""",
    "audio": """A first ensemble of three forests and a cosine, chosen with 24 training speakers, was worse than the quadratic
ratio at an FPR of 0.01 when it was run on splits 1 to 3 with 36: likelihood ratios gain more from additional speakers than
forests do. So `GaussianSimilarity` was added (it has one covariance within and one between speakers, where the quadratic
ratio has four unconstrained ones), and all models were chosen again on the training speakers of split 0, in three and in six
folds (24 and 30 training speakers). There it is the best single model in AUC and at an FPR of 0.1; forests in addition to it
help at 0.001 and below. Also compared: landmarks before it, random subsets of speakers or features, samples scaled to unit
length, forests along discriminant directions. The results of these models are
limited by features that mix the speaker with the spoken digit. `NuisanceCentering`, which finds clusters such as the digits by
itself and subtracts what they add, was added later; it was chosen on the training speakers of split 0 and on typists, and
AutoSimilarity was then run again; and once more when it stored one clustering instead of ten, so that a model file discloses
no sample, which cost 0.003 in AUC and 0.011 in TPR at 0.01.""",
    "audio_boosting": """On splits 1 to 3. Settings were searched for each library on the training side of split 0
(`benchmarks/accuracy/tune.py`). SimilarityBoosting was run again after its penalty for the same pairs had been lowered, which
faces and other data asked for; here it costs a little.""",
    "lfw_boosting": """On splits 1 to 3. Settings were searched for each library on the training side of split 0
(`benchmarks/accuracy/tune.py`), those of simtree on the same pairs, for fresh ones too. SimilarityBoosting was run again after
its penalty for the same pairs had been lowered: with the larger one, more of the most similar pairs had equal scores. At an FPR
of 0.00001 forty different pairs decide: the TPR of simtree is near 0 on split 2, that of LightGBM below 0.1 on splits 1 and 2.
The TPR of AutoSimilarity does not fall like this (table above).""",
    "lfw": """Compared on the training people: more and less whitening, forests on raw and on whitened features, with same
pairs uniform over pairs and over people, with more pairs and fewer trees, a likelihood ratio, Euclidean distance as a
further member. Same pairs that are uniform over people (`same_weighting`) help most at the lowest FPRs and cost a little at
0.01; whitened features compensate for it. The descriptors were trained, on other faces, to be compared by distance: at an
FPR of 0.1 there is nothing left to gain, and differences there are a few of 30,000 same pairs. AutoSimilarity and embeddings
were run later, not on the official folds. AutoSimilarity was run before it tried `NuisanceCentering`,
and before it counted same pairs of one identity as it does now when it gives up candidates.""",
    "uci": """The ensemble of two representations was chosen on the training sides of the first folds. The pair classifiers see
only the features f of 100,000 pairs; simtree's models see the classes too, which explains the gain: if the classes are known,
their posterior probabilities for each sample determine the probability of a same pair. Posteriors of several classifiers know
them as well, and their mean is the strongest baseline. AutoSimilarity was run again after its choice of members had become
simpler and large networks had been added: it is within 0.01 of the best baseline at all rates but the lowest, where the
differences are within two standard errors. The random features of its kernel classifier were made more for small tables after
a split of isolet had shown how much chance there was in them; the number was chosen on the training side of split 0.
AutoSimilarity was run before it counted same pairs of one class as it does now when it gives up candidates.""",
    "uci_boosting": "",
    "small_tables": """The tables were used while AutoSimilarity was developed. That it gives up no candidate after a fold
of few samples, and grows more trees on few samples, follows from sonar and ionosphere, which were then run again. On sonar
it remains behind: with some 170 samples to choose and fit on, chance decides more than the rule of choice; on the training
side of split 0, and with another random seed, it is level with the mean of the peers' posteriors (scripts). Boosted pair
classifiers, LMNN and NCA have not been run. AutoSimilarity was run before it counted same pairs of one class as it does now
when it gives up candidates.""",
    "small_people": "",
}
