package levels

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb/pb21"
)

const (
	validItem = pb21.RepDefLayer_ALL_VALID_ITEM
	nullItem  = pb21.RepDefLayer_NULLABLE_ITEM
	nullEmpty = pb21.RepDefLayer_NULL_AND_EMPTY_LIST
)

// The levels of small arrays as pages hold them, worked out by hand from the format; and the way back.
func TestLevelsOfSmallArrays(t *testing.T) {
	item := func(dt arrow.DataType) arrow.DataType {
		return arrow.ListOfField(arrow.Field{Name: "item", Type: dt, Nullable: true})
	}
	pair := arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})
	cases := []struct {
		name, json string
		typ        arrow.DataType
		leaf       int
		rep, def   []uint16
		layers     []pb21.RepDefLayer
		slots      int
	}{
		{"plain", `[1, null, -3]`, arrow.PrimitiveTypes.Int64, 0, nil, []uint16{0, 1, 0}, []pb21.RepDefLayer{nullItem}, 3},
		{"list", `[[1, 2], null, [], [3]]`, item(arrow.PrimitiveTypes.Int32), 0,
			[]uint16{1, 0, 1, 1, 1}, []uint16{0, 0, 1, 2, 0}, []pb21.RepDefLayer{validItem, nullEmpty}, 3},
		{"null items", `[["ab", null], null, [], ["c"]]`, item(arrow.BinaryTypes.String), 0,
			[]uint16{1, 0, 1, 1, 1}, []uint16{0, 1, 2, 3, 0}, []pb21.RepDefLayer{nullItem, nullEmpty}, 3},
		{"struct, first leaf", `[{"a": 1, "b": "x"}, null, {"a": null, "b": "y"}]`, pair, 0,
			nil, []uint16{0, 2, 1}, []pb21.RepDefLayer{nullItem, nullItem}, 3},
		{"lists of lists", `[[[1], []], null, [null, [2, 3]]]`, item(item(arrow.PrimitiveTypes.Int32)), 0,
			[]uint16{2, 1, 2, 2, 1, 0}, []uint16{0, 2, 3, 1, 0, 0},
			[]pb21.RepDefLayer{validItem, nullEmpty, pb21.RepDefLayer_NULLABLE_LIST}, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			arr, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader(c.json))
			require.NoError(t, err)
			tree, err := NewTree(arrow.Field{Name: "c", Type: c.typ, Nullable: true})
			require.NoError(t, err)
			leaves := make([]*encoding.Leaf, len(tree.Leaves))
			for i, l := range tree.Leaves {
				leaves[i] = encoding.NewLeaf(l.Type, mem)
				defer leaves[i].Release()
			}
			require.NoError(t, tree.Shred(arr, 0, arr.Len(), leaves))

			layers, table, _ := tree.Leaves[c.leaf].Path.ToPage(leaves[c.leaf].Def)
			require.Equal(t, c.layers, layers)
			require.Equal(t, c.rep, leaves[c.leaf].Rep)
			require.Equal(t, c.slots, leaves[c.leaf].Values.Len)
			back, err := tree.Leaves[c.leaf].Path.FromPage(layers)
			require.NoError(t, err)
			for i, d := range leaves[c.leaf].Def {
				require.Equal(t, c.def[i], table[d], "entry %d", i)
				require.Equal(t, d, back[table[d]], "entry %d back", i)
			}
			out, err := tree.Assemble(leaves, arr.Len(), mem)
			require.NoError(t, err)
			defer out.Release()
			require.Equal(t, arr.String(), out.String())
		})
	}
}

// Layers that do not fit the type are refused.
func TestLayersMustFitTheType(t *testing.T) {
	p := NewPath([]Kind{Item, List})
	for _, layers := range [][]pb21.RepDefLayer{{validItem}, {validItem, nullItem}, {nullEmpty, nullEmpty}, {validItem, 99}} {
		_, err := p.FromPage(layers)
		require.Error(t, err)
	}
}
