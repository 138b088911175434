package lance

import (
	"fmt"

	"github.com/foldline/foldline/lance/internal/file"
	"github.com/foldline/foldline/lance/internal/pb"
)

// CheckWritable tells whether this package can build on the version, whoever made it: merge rows into it, delete from it, compact it.
// It reads nothing but the manifest, and so says before any effect what a later commit would say after rows have been uploaded.
// ErrInvalid: data files of several versions. ErrUnsupported: writer features that are not known; data files of a version, or a column of a type, that cannot be written; row ids
// in files of their own; data under base paths that are not in the table's store.
func (t *Table) CheckWritable() error {
	if err := checkWriterFlags(t.m.pb); err != nil {
		return err
	}
	version, err := file.ParseVersion(t.FileVersion())
	if err != nil {
		return fileError(t.root, err)
	}
	if err := sameFileVersion(t.m.pb, version.String()); err != nil {
		return err
	}
	if err := t.checkBases(); err != nil {
		return err
	}
	if err := file.CheckWritable(t.schema.fields, version); err != nil {
		return fileError(t.root, err)
	}
	for _, f := range t.Fragments() {
		if t.StableRowIDs() && f.m.GetRowIdSequence() == nil {
			return corrupt(t.m.object, "fragment %d has no row ids", f.ID())
		}
		for _, x := range externalFiles(f.m) {
			if x != nil {
				return unsupported("fragment %d keeps row ids or versions in another file", f.ID())
			}
		}
	}
	return nil
}

// fileVersionOf is the version of the data files that the manifest names, or that its files have when it does not say.
func fileVersionOf(m *pb.Manifest) string {
	if v := m.GetDataFormat().GetVersion(); v != "" {
		return v
	}
	for _, f := range m.GetFragments() {
		for _, d := range f.GetFiles() {
			return versionOf(d)
		}
	}
	return file.V21.String()
}

func versionOf(d *pb.DataFile) string {
	return fmt.Sprintf("%d.%d", d.GetFileMajorVersion(), d.GetFileMinorVersion())
}

// sameFileVersion refuses a manifest with files of another version: the engine refuses every write to such a table.
func sameFileVersion(m *pb.Manifest, want string) error {
	for _, f := range m.GetFragments() {
		for _, d := range f.GetFiles() {
			if got := versionOf(d); got != want {
				return invalid("data file %s has version %s, the table %s", d.GetPath(), got, want)
			}
		}
	}
	return nil
}
