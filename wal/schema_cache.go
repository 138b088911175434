package wal

import (
	"fmt"
	"sync"

	"github.com/apache/arrow/go/v17/arrow"
)

// maxSchemaPointers bounds the pointer cache; callers keep few schemas alive,
// one that makes a schema per record must not leak here.
const maxSchemaPointers = 1024

// schemaCache holds the schemas a log has stored or is about to store.
type schemaCache struct {
	mu      sync.RWMutex
	ids     map[SchemaID]*schemaState
	pointer map[*arrow.Schema]*schemaState
}

func newSchemaCache() schemaCache {
	return schemaCache{ids: map[SchemaID]*schemaState{}, pointer: map[*arrow.Schema]*schemaState{}}
}

// of gives the state of a schema, computing its id the first time the schema
// is seen.
func (c *schemaCache) of(s *arrow.Schema) (*schemaState, error) {
	c.mu.RLock()
	state := c.pointer[s]
	c.mu.RUnlock()
	if state != nil {
		return state, nil
	}
	state, err := newSchemaState(s)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.ids[state.id]; known != nil {
		if string(known.bytes) != string(state.bytes) {
			return nil, fmt.Errorf("wal: schema id %s stands for two schemas: %w", state.id, ErrUnsupported)
		}
		state = known
	}
	c.ids[state.id] = state
	if len(c.pointer) >= maxSchemaPointers {
		clear(c.pointer)
	}
	c.pointer[s] = state
	return state, nil
}

// restore adds a schema read from the store.
func (c *schemaCache) restore(id SchemaID, data []byte) error {
	schema, err := decodeSchema(id, data)
	if err != nil {
		return err
	}
	state, err := newSchemaState(schema)
	if err != nil {
		return err
	}
	state.stored = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids[id] = state
	return nil
}

func (c *schemaCache) byID(id SchemaID) (*schemaState, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s := c.ids[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("schema %s is not stored", id)
}
