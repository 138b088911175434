package lance

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// verdict is what theirs means for ours. The zero value is: no conflict.
type verdict struct {
	// class is ErrConflict or ErrIncompatible, nil without a conflict.
	class  error
	reason string
	// filters tells a conflict that two key filters of the same fields are the only reason for.
	filters bool
	// vectors are fragments of ours whose deletion vector theirs changed: the rebase must merge them.
	vectors []uint64
}

func retryable(reason string) verdict    { return verdict{class: ErrConflict, reason: reason} }
func incompatible(reason string) verdict { return verdict{class: ErrIncompatible, reason: reason} }

// retryableIf and incompatibleIf spell the conditional cells.
func retryableIf(conflict bool, reason string) verdict {
	if conflict {
		return retryable(reason)
	}
	return verdict{}
}

func incompatibleIf(conflict bool, reason string) verdict {
	if conflict {
		return incompatible(reason)
	}
	return verdict{}
}

// judge applies the matrix to one pair: ours is being committed, theirs has been since our read version. A nil theirs is a
// version whose transaction is gone; only what conflicts with nothing passes over it.
func judge(ours Operation, theirs *Transaction) verdict {
	if theirs == nil {
		return retryableIf(!onlyTableMetadata(ours), "the transaction is gone")
	}
	if theirs.Op == nil || theirs.Op.Kind() == KindOther {
		return incompatible("the operation is unknown")
	}
	r, known := conflicts[ours.Kind()][theirs.Op.Kind()]
	if !known {
		return incompatible("the pair is undefined")
	}
	return r.judge(ours, theirs.Op)
}

// onlyTableMetadata reports whether op is an update of table metadata, which the matrix lets pass over everything.
func onlyTableMetadata(op Operation) bool {
	u, ok := op.(*UpdateConfig)
	return ok && u.Config == nil && u.SchemaMetadata == nil && len(u.FieldMetadata) == 0
}

func (r rule) judge(ours, theirs Operation) verdict {
	switch r {
	case ruleOK:
		return verdict{}
	case ruleRetry:
		return retryable("the pair never passes")
	case ruleOverlap:
		return retryableIf(overlaps(ours, theirs), "a fragment of ours was changed")
	case ruleVectors:
		return judgeVectors(ours, theirs)
	case ruleFilter:
		return retryableIf(ours.(*Update).Filter != nil, "rows were appended without a key filter")
	case ruleKeys:
		return judgeKeys(ours.(*Update), theirs.(*Update))
	case ruleConfigKeyOrRetry:
		if same := sharesConfigKey(ours, theirs); same {
			return incompatible("the same config key was written")
		}
		return retryable("the table was overwritten")
	case ruleConfigKey:
		return incompatibleIf(sharesConfigKey(ours, theirs), "the same config key was written")
	case ruleConfigOverwritten:
		u := ours.(*UpdateConfig)
		return incompatibleIf(u.SchemaMetadata != nil || len(u.FieldMetadata) > 0 || sharesConfigKey(ours, theirs),
			"the table was overwritten")
	case ruleConfigConfig:
		return incompatibleIf(sameMaps(ours.(*UpdateConfig), theirs.(*UpdateConfig)), "the same metadata was written")
	}
	return r.judgeIndexesAndFiles(ours, theirs)
}

func (r rule) judgeIndexesAndFiles(ours, theirs Operation) verdict {
	switch r {
	case ruleIndexOfRewritten:
		return retryableIf(mayCover(theirs.(*CreateIndex).New, touched(ours)), "an index of theirs covers a fragment of ours")
	case ruleIndexOverRewritten:
		return retryableIf(mayCover(ours.(*CreateIndex).New, touched(theirs)), "an indexed fragment was rewritten")
	case ruleIndexName:
		return retryableIf(sharesName(ours.(*CreateIndex), theirs.(*CreateIndex)), "an index of that name was made")
	case ruleIndexedField:
		return retryableIf(indexesField(ours.(*CreateIndex), theirs.(*DataReplacement)), "an indexed field was replaced")
	case ruleReplacedIndexed:
		return retryableIf(indexesField(theirs.(*CreateIndex), ours.(*DataReplacement)), "a replaced field was indexed")
	case ruleReplaceRows:
		return judgeReplacement(ours.(*DataReplacement), theirs)
	case ruleReplaceSame:
		return retryableIf(sharesReplacement(ours.(*DataReplacement), theirs.(*DataReplacement)), "the same column was replaced")
	}
	return incompatible("the pair never passes")
}

// touched lists the fragments whose rows or files an operation changes.
func touched(op Operation) []uint64 {
	switch op := op.(type) {
	case *Delete:
		return append(fragmentIDs(op.UpdatedFragments), op.DeletedFragmentIDs...)
	case *Update:
		return append(fragmentIDs(op.UpdatedFragments), op.RemovedFragmentIDs...)
	case *Rewrite:
		var ids []uint64
		for _, g := range op.Groups {
			ids = append(ids, fragmentIDs(g.Old)...)
		}
		return ids
	case *DataReplacement:
		ids := make([]uint64, 0, len(op.Files))
		for id := range op.Files {
			ids = append(ids, id)
		}
		return ids
	}
	return nil
}

// removed lists the fragments that a Delete or Update drops whole.
func removed(op Operation) []uint64 {
	switch op := op.(type) {
	case *Delete:
		return op.DeletedFragmentIDs
	case *Update:
		return op.RemovedFragmentIDs
	}
	return nil
}

func common(a, b []uint64) []uint64 {
	set := make(map[uint64]struct{}, len(a))
	for _, id := range a {
		set[id] = struct{}{}
	}
	var out []uint64
	for _, id := range b {
		if _, ok := set[id]; ok {
			out = append(out, id)
		}
	}
	return out
}

func overlaps(ours, theirs Operation) bool { return len(common(touched(ours), touched(theirs))) > 0 }

func judgeVectors(ours, theirs Operation) verdict {
	if gone := common(touched(ours), removed(theirs)); len(gone) > 0 {
		return retryable(fmt.Sprintf("fragment %d was removed", gone[0]))
	}
	return verdict{vectors: common(touched(ours), touched(theirs))}
}

func judgeKeys(ours, theirs *Update) verdict {
	if ours.Filter != nil {
		if conflict, reason := ours.Filter.conflicts(theirs.Filter); conflict {
			v := retryable(reason)
			v.filters = theirs.Filter != nil && slices.Equal(ours.Filter.FieldIDs, theirs.Filter.FieldIDs)
			return v
		}
	}
	return judgeVectors(ours, theirs)
}

// configKeys returns the config keys that an operation upserts and those it deletes.
func configKeys(op Operation) (upserts map[string]string, deletes []string) {
	switch op := op.(type) {
	case *Overwrite:
		return op.ConfigUpserts, nil
	case *UpdateConfig:
		if op.Config != nil {
			return op.Config.Set, op.Config.Remove
		}
	}
	return nil, nil
}

// sharesConfigKey reports whether a key upserted by one is upserted or deleted by the other.
func sharesConfigKey(ours, theirs Operation) bool {
	a, aDeletes := configKeys(ours)
	b, bDeletes := configKeys(theirs)
	for k := range a {
		if _, ok := b[k]; ok || slices.Contains(bDeletes, k) {
			return true
		}
	}
	return slices.ContainsFunc(aDeletes, func(k string) bool { _, ok := b[k]; return ok })
}

func sameMaps(ours, theirs *UpdateConfig) bool {
	for id := range ours.FieldMetadata {
		if _, ok := theirs.FieldMetadata[id]; ok {
			return true
		}
	}
	return sharesConfigKey(ours, theirs) || (ours.SchemaMetadata != nil && theirs.SchemaMetadata != nil)
}

// mayCover reports whether an index covers one of the fragments or does not say what it covers.
func mayCover(indexes []Index, fragments []uint64) bool {
	for _, ix := range indexes {
		if ix.Fragments == nil || coversAny(ix.Fragments, fragments) {
			return true
		}
	}
	return false
}

func coversAny(covered *roaring.Bitmap, fragments []uint64) bool {
	return slices.ContainsFunc(fragments, func(id uint64) bool { return covered.Contains(uint32(id)) })
}

func sharesName(ours, theirs *CreateIndex) bool {
	return slices.ContainsFunc(ours.New, func(a Index) bool {
		return slices.ContainsFunc(theirs.New, func(b Index) bool { return a.Name == b.Name })
	})
}

func indexesField(create *CreateIndex, replace *DataReplacement) bool {
	for _, ix := range create.New {
		for _, f := range replace.Files {
			if slices.ContainsFunc(ix.FieldIDs, func(id int32) bool { return slices.Contains(f.Fields, id) }) {
				return true
			}
		}
	}
	return false
}

func judgeReplacement(ours *DataReplacement, theirs Operation) verdict {
	if gone := common(touched(ours), removed(theirs)); len(gone) > 0 {
		return incompatible(fmt.Sprintf("fragment %d was removed", gone[0]))
	}
	u, ok := theirs.(*Update)
	if !ok {
		return verdict{}
	}
	if !u.RewritesColumns {
		return retryableIf(overlaps(ours, theirs), "rows were moved out of a replaced fragment")
	}
	for _, id := range common(touched(ours), touched(theirs)) {
		for _, field := range ours.Files[id].Fields {
			if slices.Contains(u.ModifiedFields, uint32(field)) {
				return retryable("the replaced column was rewritten")
			}
		}
	}
	return verdict{}
}

func sharesReplacement(ours, theirs *DataReplacement) bool {
	for id, a := range ours.Files {
		b, ok := theirs.Files[id]
		if ok && slices.ContainsFunc(a.Fields, func(f int32) bool { return slices.Contains(b.Fields, f) }) {
			return true
		}
	}
	return false
}
