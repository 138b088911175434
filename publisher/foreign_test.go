package publisher

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/lance"
)

// do makes one commit, or one maintenance run, as another program would: an operation of betweenOperations on a table.
func (f foreign) do(ctx context.Context, key, operation string) error {
	value := int64(theirValue)
	switch operation {
	case "merge our new key":
		return f.merge(ctx, key, "u", &value)
	case "merge our strict key":
		return f.merge(ctx, key, "n", &value)
	case "merge our deleted key":
		return f.merge(ctx, key, "b", &value)
	case "merge another key":
		return f.merge(ctx, key, "z", &value)
	case "delete our key":
		return f.merge(ctx, key, "a", nil)
	case "append another key":
		return f.append(ctx, key, "z", value)
	case "overwrite":
		return f.overwrite(ctx, key)
	case "restore":
		return f.restore(ctx, key, 1)
	case "compact":
		return f.evolve(ctx, key, func(t *lance.Table) (lance.Operation, error) {
			op, err := t.Compact(ctx, lance.CompactOptions{})
			if op == nil && err == nil {
				err = errors.New("nothing to compact")
			}
			return op, err
		})
	case "clean up":
		return f.cleanUp(ctx, key)
	case "append and clean up":
		return errors.Join(f.append(ctx, key, "z", value), f.config(ctx, key), f.cleanUp(ctx, key))
	case "add a column":
		return f.evolve(ctx, key, func(t *lance.Table) (lance.Operation, error) {
			return t.AddColumns(arrow.Field{Name: "theirs", Type: arrow.BinaryTypes.String, Nullable: true})
		})
	case "drop a column":
		return f.evolve(ctx, key, func(t *lance.Table) (lance.Operation, error) { return t.DropColumns("v") })
	case "drop and add a column":
		return errors.Join(f.do(ctx, key, "drop a column"), f.evolve(ctx, key, func(t *lance.Table) (lance.Operation, error) {
			return t.AddColumns(arrow.Field{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
		}))
	case "rename a column":
		return f.evolve(ctx, key, func(t *lance.Table) (lance.Operation, error) { return t.RenameColumn("v", "w") })
	case "change metadata":
		return f.config(ctx, key)
	}
	return fmt.Errorf("unknown operation %q", operation)
}

// evolve commits what plan makes of the newest version.
func (f foreign) evolve(ctx context.Context, key string, plan func(*lance.Table) (lance.Operation, error)) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	op, err := plan(t)
	if err != nil {
		return err
	}
	_, err = t.Commit(ctx, lance.NewTransaction(t, op), lance.CommitOptions{})
	return err
}

// cleanUp removes all versions of a table below its newest with their transactions, as a cleanup without an age limit does.
func (f foreign) cleanUp(ctx context.Context, key string) error {
	t, err := f.open(ctx, key)
	if err != nil {
		return err
	}
	versions, err := t.Versions(ctx, t.Version()-1)
	if err != nil {
		return err
	}
	if err := t.DeleteVersions(ctx, versions); err != nil {
		return err
	}
	own := strconv.FormatUint(t.Version()-1, 10)
	files, err := f.store.List(ctx, t.Root()+"/_transactions/", "", 0)
	if err != nil {
		return err
	}
	for _, file := range files {
		if file.Key[len(t.Root()+"/_transactions/"):][:len(own)+1] == own+"-" {
			continue // the newest version names it
		}
		if err := f.store.Delete(ctx, file.Key); err != nil {
			return err
		}
	}
	return nil
}

// tableRoot is where a table of the test's graph is.
func tableRoot(key string) string { return heads.Join(testRoot, heads.TablePath(key)) }

// at opens the newest version at a path of the graph.
func (f foreign) at(ctx context.Context, path string) (*lance.Table, error) {
	return lance.Open(ctx, f.store, heads.Join(testRoot, path))
}
