package lance

// rule is one cell of the conflict matrix: what a commit of ours does when theirs landed since our read version.
type rule uint8

const (
	ruleOK      rule = iota
	ruleRetry        // retryable: plan again
	ruleNever        // incompatible
	ruleOverlap      // retryable if theirs touches a fragment that ours modifies or rewrites
	ruleVectors      // as ruleOverlap, but deletion vectors are merged when the rows are known and disjoint
	ruleFilter       // retryable if ours promises unique keys, since theirs may have inserted one
	ruleKeys         // key filters are compared, then ruleVectors
	ruleConfigKeyOrRetry
	ruleConfigKey          // incompatible if both write the same config key
	ruleIndexOfRewritten   // retryable if a new index of theirs covers, or may cover, a fragment we rewrite
	ruleIndexOverRewritten // retryable if our new index covers, or may cover, a fragment they rewrote
	ruleIndexName          // retryable if both make an index of the same name
	ruleIndexedField       // retryable if ours indexes a field that they replaced
	ruleReplacedIndexed    // retryable if theirs indexes a field that we replace
	ruleReplaceRows        // incompatible if theirs removed the fragment, retryable if it moved rows out of it
	ruleReplaceSame        // retryable if both replace the same field of the same fragment
	ruleConfigOverwritten  // incompatible if ours touches schema or field metadata, or the same config key
	ruleConfigConfig       // incompatible if both touch the same config key, the schema's or a field's metadata
)

// conflicts is the format's conflict matrix as the reference engine applies it: first index ours, second theirs. A pair that
// is not listed is incompatible; so is every operation that is not known, on either side. Rows exist for the operations whose
// commits are defined here; those that this package does not commit (CreateIndex, DataReplacement) serve to explain theirs.
var conflicts = map[Kind]map[Kind]rule{
	KindAppend: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleNever, KindRewrite: ruleOK,
		KindCreateIndex: ruleOK, KindMerge: ruleOK, KindProject: ruleOK, KindRestore: ruleNever,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK, KindDataReplacement: ruleOK,
		KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindDelete: {
		KindAppend: ruleOK, KindDelete: ruleVectors, KindUpdate: ruleVectors, KindOverwrite: ruleNever,
		KindRewrite: ruleOverlap, KindCreateIndex: ruleOK, KindMerge: ruleRetry, KindProject: ruleOK,
		KindRestore: ruleNever, KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK,
		KindDataReplacement: ruleOverlap, KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	// An update of ours never compacts shards of another writer's log, so it passes over UpdateMemWalState.
	KindUpdate: {
		KindAppend: ruleFilter, KindDelete: ruleVectors, KindUpdate: ruleKeys, KindOverwrite: ruleNever,
		KindRewrite: ruleOverlap, KindCreateIndex: ruleOK, KindMerge: ruleRetry, KindProject: ruleOK,
		KindRestore: ruleNever, KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK,
		KindDataReplacement: ruleOverlap, KindUpdateMemWalState: ruleOK, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindOverwrite: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleConfigKeyOrRetry, KindRewrite: ruleOK,
		KindCreateIndex: ruleOK, KindMerge: ruleOK, KindProject: ruleOK, KindRestore: ruleOK,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleConfigKey, KindDataReplacement: ruleOK,
		KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindRewrite: {
		KindAppend: ruleOK, KindDelete: ruleOverlap, KindUpdate: ruleOverlap, KindOverwrite: ruleNever,
		KindRewrite: ruleOverlap, KindCreateIndex: ruleIndexOfRewritten, KindMerge: ruleRetry, KindProject: ruleOK,
		KindRestore: ruleNever, KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK,
		KindDataReplacement: ruleOverlap, KindUpdateMemWalState: ruleOK, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindCreateIndex: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleNever,
		KindRewrite: ruleIndexOverRewritten, KindCreateIndex: ruleIndexName, KindMerge: ruleOK, KindProject: ruleOK,
		KindRestore: ruleNever, KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK,
		KindDataReplacement: ruleIndexedField, KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindMerge: {
		KindAppend: ruleRetry, KindDelete: ruleRetry, KindUpdate: ruleRetry, KindOverwrite: ruleNever, KindRewrite: ruleRetry,
		KindCreateIndex: ruleOK, KindMerge: ruleRetry, KindProject: ruleNever, KindRestore: ruleNever,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK, KindDataReplacement: ruleRetry,
		KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindProject: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleNever, KindRewrite: ruleOK,
		KindCreateIndex: ruleOK, KindMerge: ruleRetry, KindProject: ruleRetry, KindRestore: ruleNever,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK, KindDataReplacement: ruleOK,
		KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindRestore: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleOK, KindRewrite: ruleOK,
		KindCreateIndex: ruleOK, KindMerge: ruleOK, KindProject: ruleOK, KindRestore: ruleOK,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK, KindDataReplacement: ruleOK,
		KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindReserveFragments: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleNever, KindRewrite: ruleOK,
		KindCreateIndex: ruleOK, KindMerge: ruleOK, KindProject: ruleOK, KindRestore: ruleNever,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK, KindDataReplacement: ruleOK,
		KindUpdateMemWalState: ruleOK, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindUpdateConfig: {
		KindAppend: ruleOK, KindDelete: ruleOK, KindUpdate: ruleOK, KindOverwrite: ruleConfigOverwritten, KindRewrite: ruleOK,
		KindCreateIndex: ruleOK, KindMerge: ruleOK, KindProject: ruleOK, KindRestore: ruleOK,
		KindReserveFragments: ruleOK, KindUpdateConfig: ruleConfigConfig, KindDataReplacement: ruleOK,
		KindUpdateMemWalState: ruleOK, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
	KindDataReplacement: {
		KindAppend: ruleOK, KindDelete: ruleReplaceRows, KindUpdate: ruleReplaceRows, KindOverwrite: ruleNever,
		KindRewrite: ruleOverlap, KindCreateIndex: ruleReplacedIndexed, KindMerge: ruleRetry, KindProject: ruleOK,
		KindRestore: ruleNever, KindReserveFragments: ruleOK, KindUpdateConfig: ruleOK,
		KindDataReplacement: ruleReplaceSame, KindUpdateMemWalState: ruleNever, KindClone: ruleOK, KindUpdateBases: ruleOK,
	},
}
