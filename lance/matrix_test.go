package lance

import (
	"errors"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/pb"
)

func fragment(id uint64) Fragment { return Fragment{&pb.DataFragment{Id: id, PhysicalRows: 10}} }

func testFilter(hashes ...uint64) *KeyFilter { return &KeyFilter{FieldIDs: []int32{0}, Exact: hashes} }

// oneOfEach returns an operation of every kind that has a row in the matrix, all of them on fragment 1.
func oneOfEach() []Operation {
	return []Operation{
		&Append{}, &Delete{UpdatedFragments: []Fragment{fragment(1)}}, &Update{UpdatedFragments: []Fragment{fragment(1)}},
		&Update{UpdatedFragments: []Fragment{fragment(1)}, Filter: testFilter(1)}, &Overwrite{},
		&Rewrite{Groups: []RewriteGroup{{Old: []Fragment{fragment(1)}}}}, &CreateIndex{New: []Index{{Name: "a", FieldIDs: []int32{1}}}},
		&Merge{}, &Project{}, &Restore{}, &ReserveFragments{}, &UpdateConfig{},
		&DataReplacement{Files: map[uint64]DataFile{1: {Fields: []int32{1}}}},
	}
}

// TestMatrix compares every cell of the format's two tables, read as: o = ok, R = retryable, I = incompatible, v = merge the
// deletion vectors or retry. "hit" has both sides on fragment 1, "miss" ours on 1 and theirs on 2 with other keys and names.
func TestMatrix(t *testing.T) {
	type pair struct{ hit, miss string }
	theirs := func(id uint64, hash uint64, name string) []Operation {
		return []Operation{
			&Append{}, &Delete{UpdatedFragments: []Fragment{fragment(id)}},
			&Update{UpdatedFragments: []Fragment{fragment(id)}, Filter: testFilter(hash)}, &Overwrite{ConfigUpserts: map[string]string{name: "1"}},
			&Rewrite{Groups: []RewriteGroup{{Old: []Fragment{fragment(id)}}}},
			&CreateIndex{New: []Index{{Name: name, FieldIDs: []int32{int32(id)}, Fragments: roaring.BitmapOf(uint32(id))}}},
			&Merge{}, &Project{}, &Restore{}, &ReserveFragments{},
			&UpdateConfig{Config: &MapUpdate{Set: map[string]string{name: "1"}}},
			&DataReplacement{Files: map[uint64]DataFile{id: {Fields: []int32{int32(id)}}}}, &UpdateMemWalState{}, &Clone{}, &UpdateBases{},
		}
	}
	ours := []struct {
		name string
		op   Operation
		// want has a letter per column: Append Delete Update Overwrite Rewrite CreateIndex Merge Project Restore
		// ReserveFragments UpdateConfig DataReplacement UpdateMemWalState Clone UpdateBases.
		want pair
	}{
		{"Append", &Append{}, pair{"oooIooooIoooIoo", "oooIooooIoooIoo"}},
		{"Delete", &Delete{UpdatedFragments: []Fragment{fragment(1)}}, pair{"ovvIRoRoIooRIoo", "oooIooRoIoooIoo"}},
		{"Update", &Update{UpdatedFragments: []Fragment{fragment(1)}}, pair{"ovvIRoRoIooRooo", "oooIooRoIoooooo"}},
		{"Update, filter", &Update{UpdatedFragments: []Fragment{fragment(1)}, Filter: testFilter(1)}, pair{"RvRIRoRoIooRooo", "RooIooRoIoooooo"}},
		{"Overwrite", &Overwrite{ConfigUpserts: map[string]string{"a": "2"}}, pair{"oooIooooooIoIoo", "oooRooooooooIoo"}},
		{"Rewrite", &Rewrite{Groups: []RewriteGroup{{Old: []Fragment{fragment(1)}}}}, pair{"oRRIRRRoIooRooo", "oooIooRoIoooooo"}},
		{"CreateIndex", &CreateIndex{New: []Index{{Name: "a", FieldIDs: []int32{1}, Fragments: roaring.BitmapOf(1)}}}, pair{"oooIRRooIooRIoo", "oooIooooIoooIoo"}},
		{"Merge", &Merge{}, pair{"RRRIRoRIIooRIoo", "RRRIRoRIIooRIoo"}},
		{"Project", &Project{}, pair{"oooIooRRIoooIoo", "oooIooRRIoooIoo"}},
		{"Restore", &Restore{}, pair{"ooooooooooooIoo", "ooooooooooooIoo"}},
		{"ReserveFragments", &ReserveFragments{}, pair{"oooIooooIoooooo", "oooIooooIoooooo"}},
		{"UpdateConfig", &UpdateConfig{Config: &MapUpdate{Set: map[string]string{"a": "2"}}}, pair{"oooIooooooIoooo", "ooooooooooooooo"}},
		{"DataReplacement", &DataReplacement{Files: map[uint64]DataFile{1: {Fields: []int32{1}}}}, pair{"ooRIRRRoIooRIoo", "oooIooRoIoooIoo"}},
	}
	for _, o := range ours {
		t.Run(o.name, func(t *testing.T) {
			require.Equal(t, o.want.hit, row(o.op, theirs(1, 1, "a")), "hit")
			require.Equal(t, o.want.miss, row(o.op, theirs(2, 2, "b")), "miss")
			require.Equal(t, "I", row(o.op, []Operation{&Other{}}), "an unknown operation")
		})
	}
}

func row(ours Operation, theirs []Operation) string {
	var out []byte
	for _, op := range theirs {
		switch v := judge(ours, &Transaction{Op: op}); {
		case errors.Is(v.class, ErrConflict):
			out = append(out, 'R')
		case errors.Is(v.class, ErrIncompatible):
			out = append(out, 'I')
		case len(v.vectors) > 0:
			out = append(out, 'v')
		default:
			out = append(out, 'o')
		}
	}
	return string(out)
}

// TestMatrixLetteredCells covers the conditions that one hit and one miss cannot tell apart.
func TestMatrixLetteredCells(t *testing.T) {
	update := &Update{UpdatedFragments: []Fragment{fragment(1)}}
	require.Equal(t, "R", row(update, []Operation{&Delete{DeletedFragmentIDs: []uint64{1}}}), "the fragment was removed whole")
	require.Equal(t, "R", row(&Update{Filter: testFilter(1)}, []Operation{&Update{}}), "filter against no filter")
	require.Equal(t, "o", row(&Update{}, []Operation{&Update{Filter: testFilter(1)}}), "no filter against filter")
	rewrite := &Rewrite{Groups: []RewriteGroup{{Old: []Fragment{fragment(1)}}}}
	require.Equal(t, "R", row(rewrite, []Operation{&CreateIndex{New: []Index{{Name: "a"}}}}), "an index without bitmap")
	require.Equal(t, "o", row(rewrite, []Operation{&CreateIndex{Removed: []Index{{Name: "a"}}}}), "a dropped index")
	require.Equal(t, "I", row(&UpdateConfig{SchemaMetadata: &MapUpdate{}}, []Operation{&Overwrite{}}))
	require.Equal(t, "I", row(&UpdateConfig{FieldMetadata: map[int32]*MapUpdate{1: {}}}, []Operation{&Overwrite{}}))
	config := func(set, del string) *UpdateConfig {
		return &UpdateConfig{Config: &MapUpdate{Set: map[string]string{set: ""}, Remove: []string{del}}}
	}
	require.Equal(t, "I", row(config("a", "b"), []Operation{config("c", "a")}))
	require.Equal(t, "I", row(config("a", "b"), []Operation{config("b", "c")}))
	require.Equal(t, "o", row(config("a", "x"), []Operation{config("b", "x")}))
	require.Equal(t, "o", row(&UpdateConfig{TableMetadata: &MapUpdate{}}, []Operation{&UpdateConfig{TableMetadata: &MapUpdate{}}}))
	require.Equal(t, "I", row(&UpdateConfig{SchemaMetadata: &MapUpdate{}}, []Operation{&UpdateConfig{SchemaMetadata: &MapUpdate{}}}))
	field := func(id int32) *UpdateConfig { return &UpdateConfig{FieldMetadata: map[int32]*MapUpdate{id: {}}} }
	require.Equal(t, "Io", row(field(1), []Operation{field(1), field(2)}))
	replace := &DataReplacement{Files: map[uint64]DataFile{1: {Fields: []int32{1}}}}
	require.Equal(t, "I", row(replace, []Operation{&Delete{DeletedFragmentIDs: []uint64{1}}}))
	columns := &Update{UpdatedFragments: []Fragment{fragment(1)}, RewritesColumns: true, ModifiedFields: []uint32{1}}
	require.Equal(t, "R", row(replace, []Operation{columns}))
	columns.ModifiedFields = []uint32{2}
	require.Equal(t, "o", row(replace, []Operation{columns}))
}

// TestMissingTransaction: only a barrier passes over a version whose transaction is gone.
func TestMissingTransaction(t *testing.T) {
	for _, op := range oneOfEach() {
		want := ErrConflict
		if op.Kind() == KindUpdateConfig {
			want = nil
		}
		require.Equal(t, want, judge(op, nil).class, op.Kind())
	}
	require.Equal(t, ErrConflict, judge(&UpdateConfig{Config: &MapUpdate{}}, nil).class)
}

// TestKeyFilterComparison is the table of the format's filter rules.
func TestKeyFilterComparison(t *testing.T) {
	bloom := func(hashes ...uint64) *KeyFilter {
		b := NewBloom()
		for _, h := range hashes {
			b.Add(h)
		}
		return &KeyFilter{FieldIDs: []int32{0}, Bloom: b}
	}
	oddItems, oddProbability, short, defaults := bloom(1), bloom(1), bloom(1), bloom(1)
	oddItems.Bloom.Items = 8191
	oddProbability.Bloom.Probability = 0.001
	short.Bloom.Bits = short.Bloom.Bits[:16384]
	defaults.Bloom.Items, defaults.Bloom.Probability, defaults.Bloom.NumBits = 0, 0, 1
	const far = 0xffff_ffff_0000_0000
	for _, c := range []struct {
		name         string
		ours, theirs *KeyFilter
		conflict     bool
	}{
		{"other fields", testFilter(1), &KeyFilter{FieldIDs: []int32{1}}, true},
		{"other field order", &KeyFilter{FieldIDs: []int32{0, 1}}, &KeyFilter{FieldIDs: []int32{1, 0}}, true},
		{"bloom, same key", bloom(1), bloom(1), true},
		{"bloom, other block", bloom(1), bloom(far), false},
		{"bloom, both empty", bloom(), bloom(), false},
		{"bloom, other items", bloom(far), oddItems, true},
		{"bloom, other probability", bloom(far), oddProbability, true},
		{"bloom, other length", bloom(far), short, true},
		{"bloom, defaults spelled as 0", bloom(far), defaults, false},
		{"bloom against exact", bloom(far), testFilter(1), true},
		{"exact against bloom", testFilter(1), bloom(far), true},
		{"exact, same", testFilter(1, 2, 3), testFilter(9, 3), true},
		{"exact, disjoint", testFilter(1, 2, 3), testFilter(9, 8), false},
		{"exact against none", testFilter(1), nil, true},
		{"exact against empty", testFilter(1), &KeyFilter{FieldIDs: []int32{0}}, false},
		{"bloom against empty", bloom(1), &KeyFilter{FieldIDs: []int32{0}}, true},
	} {
		got, _ := c.ours.conflicts(c.theirs)
		require.Equal(t, c.conflict, got, c.name)
	}
}

// TestBloomVectors compares block and bits with the engine's.
func TestBloomVectors(t *testing.T) {
	for _, c := range []struct {
		hash  uint64
		block int
		bits  [8]int
	}{
		{0x78452aa11af39f9b, 481, [8]int{15, 27, 0, 24, 29, 6, 23, 13}},
		{0xd947e5641024ed68, 869, [8]int{3, 29, 10, 6, 14, 0, 28, 28}},
		{0xef46db3751d8e999, 957, [8]int{29, 0, 25, 28, 14, 22, 29, 30}},
		{0x44d0a80fdf60a481, 275, [8]int{7, 28, 12, 10, 9, 28, 1, 20}},
	} {
		b := NewBloom()
		require.Len(t, b.Bits, 32768)
		require.False(t, b.Has(c.hash))
		b.Add(c.hash)
		require.True(t, b.Has(c.hash))
		want := make([]byte, BloomBytes)
		for word, bit := range c.bits {
			want[c.block*32+word*4+bit/8] |= 1 << (bit % 8)
		}
		require.Equal(t, want, b.Bits)
	}
}
