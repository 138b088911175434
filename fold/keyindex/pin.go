package keyindex

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/foldline/foldline/lance"
)

// pin is the table version that a table's index rows are valid for.
type pin struct {
	version     uint64
	transaction string
	highest     uint64 // fragment id ever seen
	fragments   []fragmentPin
	byFragment  map[uint64]fragmentPin // made when it is first asked for
}

// fragmentPin is a fragment as the pinned version has it.
type fragmentPin struct {
	id        uint64
	rows      uint64
	keyFiles  string
	deletions string
}

// pinOf describes a version; highest is that of the pin before it.
func pinOf(t *lance.Table, highest uint64) pin {
	p := pin{version: t.Version(), transaction: t.TransactionUUID(), highest: highest}
	keyFields := t.Schema().PrimaryKeyFieldIDs()
	for _, f := range t.Fragments() {
		p.highest = max(p.highest, f.ID())
		p.fragments = append(p.fragments, fragmentPin{
			id: f.ID(), rows: f.PhysicalRows(), keyFiles: keyFiles(f, keyFields), deletions: f.DeletionPath(),
		})
	}
	return p
}

// keyFiles are the paths of the files that hold the key columns.
func keyFiles(f lance.Fragment, keyFields []int32) string {
	var paths []string
	for _, file := range f.Files() {
		if slices.ContainsFunc(keyFields, func(id int32) bool { return slices.Contains(file.Fields, id) }) {
			paths = append(paths, file.Path)
		}
	}
	return strings.Join(paths, "|")
}

// is says whether the pin is of exactly this version.
func (p pin) is(t *lance.Table) bool {
	return p.version == t.Version() && p.transaction == t.TransactionUUID()
}

// fragment is a fragment of the pinned version.
func (p *pin) fragment(id uint64) (fragmentPin, bool) {
	if p.byFragment == nil {
		p.byFragment = make(map[uint64]fragmentPin, len(p.fragments))
		for _, f := range p.fragments {
			p.byFragment[f.id] = f
		}
	}
	f, ok := p.byFragment[id]
	return f, ok
}

const pinFormat = 1

// errPin: the bytes are no pin. The table is indexed anew.
var errPin = errors.New("keyindex: not a pin")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p pin) encode() []byte {
	b := []byte{pinFormat}
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, p.version)
	text(p.transaction)
	b = binary.AppendUvarint(b, p.highest)
	b = binary.AppendUvarint(b, uint64(len(p.fragments)))
	for _, f := range p.fragments {
		b = binary.AppendUvarint(b, f.id)
		b = binary.AppendUvarint(b, f.rows)
		text(f.keyFiles)
		text(f.deletions)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodePin reads what encode wrote. Every length is bounded by the bytes left.
func decodePin(data []byte) (pin, error) {
	if len(data) < 5 || data[0] != pinFormat {
		return pin{}, errPin
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return pin{}, errPin
	}
	r := pinReader{left: body[1:]}
	p := pin{version: r.number(), transaction: r.text(), highest: r.number()}
	n := r.number()
	const leastFragment = 4 // bytes
	if n > uint64(len(r.left)/leastFragment) {
		return pin{}, errPin
	}
	for range n {
		p.fragments = append(p.fragments, fragmentPin{id: r.number(), rows: r.number(), keyFiles: r.text(), deletions: r.text()})
	}
	if r.failed || len(r.left) > 0 {
		return pin{}, errPin
	}
	return p, nil
}

type pinReader struct {
	left   []byte
	failed bool
}

func (r *pinReader) number() uint64 {
	v, n := binary.Uvarint(r.left)
	if n <= 0 {
		r.failed, r.left = true, nil
		return 0
	}
	r.left = r.left[n:]
	return v
}

func (r *pinReader) text() string {
	n := r.number()
	if n > uint64(len(r.left)) {
		r.failed, r.left = true, nil
		return ""
	}
	s := string(r.left[:n])
	r.left = r.left[n:]
	return s
}
