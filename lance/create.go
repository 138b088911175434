package lance

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/objstore"
)

// Create makes a table at root: version 1, with manifest names of the new scheme, without stable row ids. Two LISTs and one
// conditional put. ErrExists when there is a table, also when another creator was faster; ErrUnknownOutcome when the answer
// was lost and reading back did not tell.
func Create(ctx context.Context, store objstore.Store, root string, s *Schema, o CreateOptions) (*Table, error) {
	t, err := create(ctx, store, root, s, o)
	if err != nil {
		return nil, fmt.Errorf("create table %q: %w", root, err)
	}
	return t, nil
}

func create(ctx context.Context, store objstore.Store, root string, s *Schema, o CreateOptions) (*Table, error) {
	if err := s.validateNew(); err != nil {
		return nil, err
	}
	o.ensureDefaults()
	if err := absent(ctx, store, root, 0); err != nil {
		return nil, err
	}
	tx := &Transaction{UUID: uuid.NewString(), Properties: o.Properties, Op: &Overwrite{
		Fragments: o.Fragments, Schema: s, ConfigUpserts: o.Config,
	}}
	m, data, err := firstManifest(root, s, tx, o)
	if err != nil {
		return nil, err
	}
	landed, err := putManifest(ctx, store, m.object, data, tx.UUID)
	if err != nil {
		return nil, err
	}
	if !landed {
		return nil, fmt.Errorf("%w: another creator was faster", ErrExists)
	}
	settle, cancel := settling(ctx)
	defer cancel()
	if err := absent(settle, store, root, 1); err != nil {
		return nil, err
	}
	return newTable(store, root, namingV2, m)
}

// absent reports a table that has a version above the given one: a first version put below it would not count.
func absent(ctx context.Context, store objstore.Store, root string, above uint64) error {
	switch newest, err := LatestVersion(ctx, store, root); {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil && above > 0:
		return fmt.Errorf("%w: the first version was put, but: %w", ErrUnknownOutcome, err)
	case err != nil:
		return err
	case newest > above:
		return fmt.Errorf("%w: version %d", ErrExists, newest)
	}
	return nil
}

func firstManifest(root string, s *Schema, tx *Transaction, o CreateOptions) (*manifest, []byte, error) {
	d := &draft{highest: -1, m: &pb.Manifest{
		Fields: s.proto, SchemaMetadata: s.metadata, Config: o.Config, TableMetadata: o.Metadata,
		DataFormat: &pb.DataFormat{FileFormat: "lance", Version: o.FileVersion},
	}}
	if err := d.add(o.Fragments); err != nil {
		return nil, nil, err
	}
	d.finish(1, o.Clock())
	if err := d.check(); err != nil {
		return nil, nil, err
	}
	return d.encode(join(root, versionsFolder, namingV2.manifestName(1)), tx)
}

// encode builds the version's file and its decoded form.
func (d *draft) encode(object string, tx *Transaction) (*manifest, []byte, error) {
	message, err := tx.Marshal()
	if err != nil {
		return nil, nil, err
	}
	data, err := encodeManifest(d.m, message, d.index)
	if err != nil {
		return nil, nil, err
	}
	return newManifest(object, d.m, message, d.index, int64(len(data))), data, nil
}
