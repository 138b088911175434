package lance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

const (
	// manifestTailBytes is what the first request for a manifest asks for; most manifests fit.
	manifestTailBytes = 64 << 10
	// maxManifestBytes bounds a manifest that is read. Ten million fragments would reach it.
	maxManifestBytes = 1 << 30

	footerBytes   = 16
	footerMajor   = 0
	footerMinor   = 2
	manifestMagic = "LANC"
)

// manifest is one version's manifest file, taken apart. It is never changed once it is built.
type manifest struct {
	object string
	pb     *pb.Manifest
	// tx is the inline transaction's message, nil when there is none.
	tx []byte
	// index is the index section's message, nil when the table has no indexes.
	index []byte
	// size is the file's length in bytes.
	size int64

	decodeTx func() (*Transaction, error)
}

func newManifest(object string, m *pb.Manifest, tx, index []byte, size int64) *manifest {
	out := &manifest{object: object, pb: m, tx: tx, index: index, size: size}
	out.decodeTx = sync.OnceValues(func() (*Transaction, error) {
		decoded, err := UnmarshalTransaction(tx)
		if err != nil {
			return nil, corrupt(object, "inline transaction: %w", err)
		}
		return decoded, nil
	})
	return out
}

// transactionUUID takes the uuid from the inline transaction, else from the name of the transaction's file.
func (m *manifest) transactionUUID() string {
	if m.tx == nil {
		return transactionFileUUID(m.pb.GetTransactionFile())
	}
	tx, err := m.decodeTx()
	if err != nil {
		return ""
	}
	return tx.UUID
}

// decodedTransaction returns the inline transaction; ErrNotFound when there is none.
func (m *manifest) decodedTransaction() (*Transaction, error) {
	if m.tx == nil {
		return nil, fmt.Errorf("%w: version %d has no inline transaction", ErrNotFound, m.pb.GetVersion())
	}
	return m.decodeTx()
}

// transaction returns the inline transaction, else the one in the file that the manifest names.
func (m *manifest) transaction(ctx context.Context, store objstore.Store, root string) (*Transaction, error) {
	if m.tx != nil {
		return m.decodeTx()
	}
	name := m.pb.GetTransactionFile()
	if name == "" {
		return nil, fmt.Errorf("%w: version %d has no transaction", ErrNotFound, m.pb.GetVersion())
	}
	key := join(root, transactionFolder, name)
	data, err := store.Get(ctx, key)
	if err != nil {
		return nil, storeError(err)
	}
	tx, err := UnmarshalTransaction(data)
	if err != nil {
		return nil, corrupt(key, "%w", err)
	}
	return tx, nil
}

// indexSection decodes the index section; nil without indexes.
func (m *manifest) indexSection() (*pb.IndexSection, error) {
	if m.index == nil {
		return nil, nil
	}
	section := &pb.IndexSection{}
	if err := proto.Unmarshal(m.index, section); err != nil {
		return nil, corrupt(m.object, "index section: %w", err)
	}
	return section, nil
}

// encodeManifest builds the manifest file of m with the given sections and sets the sections' offsets in m.
func encodeManifest(m *pb.Manifest, tx, index []byte) ([]byte, error) {
	var buf bytes.Buffer
	section := func(message []byte) *uint64 {
		if message == nil {
			return nil
		}
		at := uint64(buf.Len())
		buf.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(message))))
		buf.Write(message)
		return &at
	}
	m.IndexSection = section(index)
	m.TransactionSection = section(tx)
	m.LaterTransactionSection = nil
	message, err := marshal(m)
	if err != nil {
		return nil, fmt.Errorf("lance: encode manifest of version %d: %w", m.GetVersion(), err)
	}
	if max(len(tx), len(index), len(message)) > math.MaxUint32 || buf.Len()+len(message) > maxManifestBytes {
		return nil, invalid("the manifest of version %d would have more than %d bytes", m.GetVersion(), maxManifestBytes)
	}
	position := *section(message)
	footer := binary.LittleEndian.AppendUint64(nil, position)
	footer = binary.LittleEndian.AppendUint16(footer, footerMajor)
	footer = binary.LittleEndian.AppendUint16(footer, footerMinor)
	buf.Write(append(footer, manifestMagic...))
	return buf.Bytes(), nil
}

// decodeManifest takes a manifest file apart and refuses what this package cannot read. object names it in errors.
func decodeManifest(object string, data []byte) (*manifest, error) {
	size := uint64(len(data))
	if size < footerBytes+4 || string(data[size-4:]) != manifestMagic {
		return nil, corrupt(object, "no manifest footer in %d bytes", size)
	}
	position := binary.LittleEndian.Uint64(data[size-footerBytes:])
	message, end, err := readSection(data[:size-footerBytes], position)
	if err != nil {
		return nil, corrupt(object, "manifest message: %w", err)
	}
	if end != size-footerBytes {
		return nil, corrupt(object, "manifest message ends at %d, footer begins at %d", end, size-footerBytes)
	}
	m := &pb.Manifest{}
	if err := proto.Unmarshal(message, m); err != nil {
		return nil, corrupt(object, "manifest message: %w", err)
	}
	var tx, index []byte
	if at := cmp.Or(m.TransactionSection, m.LaterTransactionSection); at != nil {
		if tx, _, err = readSection(data[:position], *at); err != nil {
			return nil, corrupt(object, "inline transaction: %w", err)
		}
	}
	if m.IndexSection != nil {
		if index, _, err = readSection(data[:position], *m.IndexSection); err != nil {
			return nil, corrupt(object, "index section: %w", err)
		}
	}
	if err := checkReaderFlags(m); err != nil {
		return nil, err
	}
	if err := validateManifest(m); err != nil {
		return nil, corrupt(object, "%w", err)
	}
	return newManifest(object, m, tx, index, int64(size)), nil
}

// readSection returns the length-prefixed message at offset at of data and where it ends.
func readSection(data []byte, at uint64) (message []byte, end uint64, err error) {
	size := uint64(len(data))
	if at > size || size-at < 4 {
		return nil, 0, fmt.Errorf("offset %d of %d bytes", at, size)
	}
	n := uint64(binary.LittleEndian.Uint32(data[at:]))
	if n > size-at-4 {
		return nil, 0, fmt.Errorf("length %d at offset %d of %d bytes", n, at, size)
	}
	return data[at+4 : at+4+n : at+4+n], at + 4 + n, nil
}

// validateManifest checks what the rest of the package relies on.
func validateManifest(m *pb.Manifest) error {
	seen := make(map[uint64]struct{}, len(m.GetFragments()))
	for _, f := range m.GetFragments() {
		if _, twice := seen[f.GetId()]; twice || f.GetId() > math.MaxUint32 {
			return fmt.Errorf("fragment id %d is used twice or too large", f.GetId())
		}
		seen[f.GetId()] = struct{}{}
		if f.GetPhysicalRows() > math.MaxUint32+1 {
			return fmt.Errorf("fragment %d: %d rows are more than a row address can name", f.GetId(), f.GetPhysicalRows())
		}
		deleted := f.GetDeletionFile().GetNumDeletedRows()
		if f.GetPhysicalRows() > 0 && deleted > f.GetPhysicalRows() {
			return fmt.Errorf("fragment %d: %d of %d rows deleted", f.GetId(), deleted, f.GetPhysicalRows())
		}
	}
	return nil
}

// fetchManifest reads the manifest at key: one request, two for a large one. ErrNotFound when there is none.
func fetchManifest(ctx context.Context, store objstore.Store, key string) (*manifest, error) {
	data, size, err := store.GetTail(ctx, key, manifestTailBytes)
	if err != nil {
		return nil, storeError(err)
	}
	if size > maxManifestBytes {
		return nil, corrupt(key, "%d bytes are too many for a manifest", size)
	}
	if missing := size - int64(len(data)); missing > 0 {
		head, err := store.GetRange(ctx, key, 0, missing)
		if err != nil {
			return nil, storeError(err)
		}
		data = append(head, data...)
	}
	return decodeManifest(key, data)
}

// storeError puts a store's error into our classes; the store's own stays visible to errors.Is.
func storeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, objstore.ErrNotFound):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, objstore.ErrExists):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case errors.Is(err, objstore.ErrUnknownOutcome):
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case errors.Is(err, objstore.ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("lance: %w", err)
}
