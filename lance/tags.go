package lance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/foldline/foldline/objstore"
)

// Tag is a name for a version. Cleanup, ours and the engine's, keeps a tagged version; the engine's fails because of it.
type Tag struct {
	Name    string
	Version uint64
	// Branch is empty for the main history, which is all that this package reads.
	Branch string
}

// tagFile is the layout of _refs/tags/<name>.json.
type tagFile struct {
	Branch       *string           `json:"branch"`
	Version      uint64            `json:"version"`
	CreatedAt    *time.Time        `json:"createdAt,omitempty"`
	UpdatedAt    *time.Time        `json:"updatedAt,omitempty"`
	ManifestSize int64             `json:"manifestSize"`
	Metadata     map[string]string `json:"metadata"`
}

// branchFile is what cleanup needs of _refs/branches/<name>.json.
type branchFile struct {
	ParentVersion uint64 `json:"parentVersion"`
	Identifier    struct {
		VersionMapping [][2]any `json:"version_mapping"`
	} `json:"identifier"`
}

const maxRefBytes = 1 << 20

// CreateTag names this version. ErrExists when the name is taken, ErrInvalid when it is no tag name: letters, digits, '.',
// '-' and '_', no dot at either end, no "..", not ending in ".lock".
func (t *Table) CreateTag(ctx context.Context, name string, now time.Time) error {
	if err := validateTagName(name); err != nil {
		return err
	}
	now = now.UTC()
	data, err := json.MarshalIndent(tagFile{
		Version: t.Version(), CreatedAt: &now, UpdatedAt: &now, ManifestSize: t.ManifestSize(), Metadata: map[string]string{},
	}, "", "  ")
	if err != nil {
		return err
	}
	key := tagKey(t.root, name)
	err = t.store.PutIfAbsent(ctx, key, data)
	if errors.Is(err, objstore.ErrExists) || errors.Is(err, objstore.ErrUnknownOutcome) {
		if there, readErr := t.store.Get(ctx, key); readErr == nil && bytes.Equal(there, data) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("create tag %q of table %q: %w", name, t.root, storeError(err))
	}
	return nil
}

// DeleteTag removes a name; that there is none is no error.
func (t *Table) DeleteTag(ctx context.Context, name string) error {
	if err := validateTagName(name); err != nil {
		return err
	}
	if err := t.store.Delete(ctx, tagKey(t.root, name)); err != nil {
		return fmt.Errorf("delete tag %q of table %q: %w", name, t.root, storeError(err))
	}
	return nil
}

// Tags lists the table's tags by name.
func (t *Table) Tags(ctx context.Context) ([]Tag, error) { return listTags(ctx, t.store, t.root) }

func listTags(ctx context.Context, store objstore.Store, root string) ([]Tag, error) {
	var out []Tag
	err := eachRef(ctx, store, join(root, refsFolder, "tags")+"/", func(name, key string, data []byte) error {
		var f tagFile
		if err := json.Unmarshal(data, &f); err != nil {
			return corrupt(key, "%w", err)
		}
		tag := Tag{Name: name, Version: f.Version}
		if f.Branch != nil {
			tag.Branch = *f.Branch
		}
		out = append(out, tag)
		return nil
	})
	return out, err
}

// OpenTag opens the version that a tag of the main history names.
func OpenTag(ctx context.Context, store objstore.Store, root, name string) (*Table, error) {
	if err := validateTagName(name); err != nil {
		return nil, err
	}
	key := tagKey(root, name)
	data, err := getRef(ctx, store, key)
	if err != nil {
		return nil, err
	}
	var f tagFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, corrupt(key, "%w", err)
	}
	if f.Branch != nil {
		return nil, unsupported("tag %q is on branch %q", name, *f.Branch)
	}
	return OpenVersion(ctx, store, root, f.Version)
}

// branchedVersions lists the versions of the main history that branches stand on.
func branchedVersions(ctx context.Context, store objstore.Store, root string) ([]uint64, error) {
	var out []uint64
	err := eachRef(ctx, store, join(root, refsFolder, "branches")+"/", func(_, key string, data []byte) error {
		var f branchFile
		if err := json.Unmarshal(data, &f); err != nil {
			return corrupt(key, "%w", err)
		}
		out = append(out, f.ParentVersion)
		for _, parent := range f.Identifier.VersionMapping {
			if v, ok := parent[0].(float64); ok && v >= 0 {
				out = append(out, uint64(v))
			}
		}
		return nil
	})
	return out, err
}

func eachRef(ctx context.Context, store objstore.Store, prefix string, do func(name, key string, data []byte) error) error {
	infos, err := store.List(ctx, prefix, "", 0)
	if err != nil {
		return storeError(err)
	}
	for _, info := range infos {
		name, found := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), ".json")
		if !found || strings.Contains(name, "/") {
			continue
		}
		data, err := getRef(ctx, store, info.Key)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		if err := do(name, info.Key, data); err != nil {
			return err
		}
	}
	return nil
}

func getRef(ctx context.Context, store objstore.Store, key string) ([]byte, error) {
	data, size, err := store.GetTail(ctx, key, maxRefBytes)
	if err != nil {
		return nil, storeError(err)
	}
	if size > maxRefBytes {
		return nil, corrupt(key, "%d bytes are too many", size)
	}
	return data, nil
}

func tagKey(root, name string) string { return join(root, refsFolder, "tags", name+".json") }

func validateTagName(name string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	if name == "" || len(name) > 200 || strings.Trim(name, allowed) != "" || strings.Contains(name, "..") ||
		strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") {
		return invalid("tag name %q", name)
	}
	return nil
}
