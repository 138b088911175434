package bucket

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/foldline/foldline/objstore"
)

// What a server says about its answer is checked before anything is allocated for it: it may be broken, or hostile.
func TestAnswersToRanges(t *testing.T) {
	whole, tail, middle := Range{Whole: true}, Range{Suffix: true, N: 4}, Range{Off: 3, N: 4}
	for _, c := range []struct {
		name         string
		asked        Range
		length       int64
		contentRange string
		want         error
	}{
		{"whole", whole, 10, "", nil},
		{"whole and empty", whole, 0, "", nil},
		{"whole, above the bound", whole, objstore.MaxGetBytes + 1, "", objstore.ErrTooLarge},
		{"whole, answered in part", whole, 4, "bytes 0-3/10", objstore.ErrUnsupported},
		{"tail", tail, 4, "bytes 6-9/10", nil},
		{"tail of a shorter object", tail, 2, "bytes 0-1/2", nil},
		{"tail of an empty object, answered whole", tail, 0, "", nil},
		{"tail of an object that is as long, answered whole", tail, 4, "", nil},
		{"tail, answered whole", tail, 10, "", objstore.ErrUnsupported},
		{"tail, answered from the start", tail, 4, "bytes 0-3/10", objstore.ErrUnsupported},
		{"middle", middle, 4, "bytes 3-6/10", nil},
		{"middle, answered elsewhere", middle, 4, "bytes 4-7/10", objstore.ErrUnsupported},
		{"middle, answered whole", middle, 10, "", objstore.ErrUnsupported},
		{"middle, the object is shorter", middle, 2, "bytes 3-4/5", objstore.ErrRange},
		{"middle, the object ends before it", middle, 0, "bytes 3-2/3", objstore.ErrRange},
		{"middle, cut short", middle, 2, "bytes 3-4/10", objstore.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := NewBody(io.NopCloser(strings.NewReader("")), &c.length, &c.contentRange)
			require.NoError(t, err)
			err = c.asked.check(b)
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
			}
		})
	}
}

func FuzzContentRange(f *testing.F) {
	for _, text := range []string{"", "bytes 3-6/10", "bytes 0-0/1", "bytes */10", "bytes 3-6/*", "bytes -1-2/3", "bytes 9-3/10", "bytes 0-9223372036854775807/9223372036854775807"} {
		f.Add(int64(4), text)
	}
	f.Add(int64(-1), "")
	f.Fuzz(func(t *testing.T, length int64, contentRange string) {
		b, err := NewBody(io.NopCloser(strings.NewReader("")), &length, &contentRange)
		if err != nil {
			require.ErrorIs(t, err, objstore.ErrUnsupported)
			return
		}
		if b.Length != length || b.Off < 0 || b.Length < 0 || b.Off+b.Length > b.Size || b.Off+b.Length < 0 {
			t.Fatalf("%d, %q: %+v", length, contentRange, b)
		}
	})
}
