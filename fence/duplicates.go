package fence

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
)

// ErrTooManyRows: a table has more rows than a search for repeated keys may take.
var ErrTooManyRows = errors.New("fence: too many rows to look for repeated keys")

// Duplicates are the keys of one version of a table that have more than one live row. The zero value says that there are none.
type Duplicates struct {
	// Keys is their number.
	Keys uint64
	// Least tells that there may be more: only some were counted.
	Least bool
	// Sample are the exact encodings of the first of them, at most [SampleKeys], ascending.
	Sample []string
}

// SampleKeys bounds the keys that Duplicates name.
const SampleKeys = 5

// SearchLimits bound what a search for repeated keys takes. The zero value has the defaults.
type SearchLimits struct {
	// Hashes is how many rows one pass over the key columns takes in, at 8 bytes each. 0 = 8 Mi, which is 64 MiB.
	Hashes int
	// Passes is how many passes there may be at most: rows above Hashes × Passes are refused. 0 = 16, which is 128 Mi rows.
	Passes int
	// Confirmed is how many repeated keys are told from keys that share a hash, whole keys in memory; what is above is not counted
	// (Duplicates.Least). 0 = 256 Ki.
	Confirmed int
}

func (l *SearchLimits) ensureDefaults() {
	for _, d := range []struct {
		of    *int
		value int
	}{{&l.Hashes, 8 << 20}, {&l.Passes, 16}, {&l.Confirmed, 256 << 10}} {
		if *d.of == 0 {
			*d.of = d.value
		}
	}
}

// FindDuplicates looks for keys of t that have more than one live row by scans of the key columns: as many as l.Hashes asks for, and one more that
// compares the keys themselves when hashes repeat. Rows with a null in their key have none. ErrTooManyRows, and nothing is read, above the limits.
func FindDuplicates(ctx context.Context, t *lance.Table, l SearchLimits) (Duplicates, error) {
	l.ensureDefaults()
	passes := int((t.Rows() + uint64(l.Hashes) - 1) / uint64(l.Hashes))
	if passes > l.Passes {
		return Duplicates{}, fmt.Errorf("%w: %d rows, at most %d", ErrTooManyRows, t.Rows(), uint64(l.Hashes)*uint64(l.Passes))
	}
	suspects := map[uint64]bool{}
	least := false
	for pass := range passes {
		repeated, err := repeatedHashes(ctx, t, uint64(pass), uint64(passes), l.Hashes)
		if err != nil {
			return Duplicates{}, err
		}
		for _, h := range repeated {
			if least = len(suspects) == l.Confirmed; least {
				break
			}
			suspects[h] = true
		}
	}
	if len(suspects) == 0 {
		return Duplicates{}, nil
	}
	d, err := confirm(ctx, t, suspects, l.Confirmed)
	d.Least = d.Least || least
	return d, err
}

// repeatedHashes are the hashes that more than one live row has, of those in one of some equal parts of all hashes. Hashes are spread evenly, so a
// part has little more than its share of distinct ones, unless somebody has chosen the keys; then at most three shares are kept.
func repeatedHashes(ctx context.Context, t *lance.Table, part, parts uint64, share int) ([]uint64, error) {
	hashes := make([]uint64, 0, min(uint64(share), t.Rows()))
	err := scanKeys(ctx, t, func(reader *lance.KeyReader, row int) error {
		h := keys.Hash(reader.Lance(row))
		if of, _ := bits.Mul64(h, parts); of != part {
			return nil
		}
		if len(hashes) == 3*share {
			if hashes = twiceAtMost(hashes); len(hashes) > 2*share {
				return fmt.Errorf("%w: their hashes are not spread", ErrTooManyRows)
			}
		}
		hashes = append(hashes, h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var repeated []uint64
	hashes = twiceAtMost(hashes)
	for i := 1; i < len(hashes); i++ {
		if hashes[i] == hashes[i-1] {
			repeated = append(repeated, hashes[i])
		}
	}
	return repeated, nil
}

// twiceAtMost sorts hashes in place and drops what comes more than twice.
func twiceAtMost(hashes []uint64) []uint64 {
	slices.Sort(hashes)
	kept := hashes[:0]
	for _, h := range hashes {
		if n := len(kept); n < 2 || kept[n-2] != h {
			kept = append(kept, h)
		}
	}
	return kept
}

// confirm counts the keys that repeat among those with one of some hashes, of at most limit of them.
func confirm(ctx context.Context, t *lance.Table, suspects map[uint64]bool, limit int) (d Duplicates, err error) {
	met := map[string]bool{} // whether more than once
	err = scanKeys(ctx, t, func(reader *lance.KeyReader, row int) error {
		if !suspects[keys.Hash(reader.Lance(row))] {
			return nil
		}
		switch twice, known := met[string(reader.ExactBytes(row))]; {
		case !known && len(met) == limit:
			d.Least = true
		case !known:
			met[reader.Exact(row)] = false
		case !twice:
			met[reader.Exact(row)] = true
			d.Keys++
		}
		return nil
	})
	for key, twice := range met {
		if twice {
			d.addSample(key)
		}
	}
	return d, err
}

// addSample keeps the first of the keys that it is given.
func (d *Duplicates) addSample(key string) {
	at, _ := slices.BinarySearch(d.Sample, key)
	if at < SampleKeys {
		d.Sample = slices.Insert(d.Sample, at, key)
		d.Sample = d.Sample[:min(len(d.Sample), SampleKeys)]
	}
}

// scanKeys visits the live rows whose key is not null.
func scanKeys(ctx context.Context, t *lance.Table, visit func(reader *lance.KeyReader, row int) error) error {
	columns := t.Schema().PrimaryKey()
	reader, err := lance.NewKeyReader(t.Schema().Arrow(), columns)
	if err != nil {
		return err
	}
	for rec, err := range t.Scan(ctx, lance.ScanOptions{Columns: columns}) {
		if err != nil {
			return err
		}
		err = reader.Bind(rec)
		for row := 0; err == nil && row < int(rec.NumRows()); row++ {
			if !reader.Null(row) {
				err = visit(reader, row)
			}
		}
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
