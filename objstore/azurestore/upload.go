package azurestore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"

	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/retry"
)

// Create implements [objstore.Store]. What stays below one part is a single put at the commit, larger
// objects are lists of blocks. Blocks that are never committed are dropped by the service after a week.
func (s *Store) Create(ctx context.Context, key string) (objstore.Upload, error) {
	client, err := s.blob(key)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, wrap("create", key, err)
	}
	return &upload{ctx: ctx, store: s, key: key, client: client, id: uuid.New()}, nil
}

type upload struct {
	ctx    context.Context // of Create: an upload is one call that is spread over several methods
	store  *Store
	key    string
	client *blockblob.Client
	id     uuid.UUID // keeps the names of its blocks apart from those of another upload of the key

	buf    []byte // less than a part
	size   int64
	blocks []string
	ended  bool
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, wrap("write", u.key, objstore.ErrClosed)
	}
	if err := u.ctx.Err(); err != nil {
		return 0, wrap("write", u.key, err)
	}
	written := 0
	for len(p) > 0 {
		n := min(len(p), u.store.o.PartBytes-len(u.buf))
		u.buf = append(u.buf, p[:n]...)
		p, written, u.size = p[n:], written+n, u.size+int64(n)
		if len(u.buf) == u.store.o.PartBytes {
			if err := u.flush(); err != nil {
				return written, wrap("write", u.key, err)
			}
		}
	}
	return written, nil
}

// flush sends the buffer as the next block.
func (u *upload) flush() error {
	if len(u.blocks) >= maxBlocks {
		return fmt.Errorf("%w: more than %d blocks", objstore.ErrTooLarge, maxBlocks)
	}
	name := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(u.id[:], uint32(len(u.blocks))))
	_, err := retry.Read(u.ctx, &u.store.o.Policy, func(ctx context.Context) (struct{}, error) { // a block may be sent twice
		_, err := u.client.StageBlock(ctx, name, streaming.NopCloser(bytes.NewReader(u.buf)), nil)
		return struct{}{}, err
	})
	if err != nil {
		return err
	}
	u.blocks = append(u.blocks, name)
	u.buf = u.buf[:0]
	return nil
}

// Commit implements [objstore.Upload].
func (u *upload) Commit() (objstore.Info, error) {
	if u.ended {
		return objstore.Info{}, wrap("commit", u.key, objstore.ErrClosed)
	}
	u.ended = true
	if err := u.ctx.Err(); err != nil {
		return objstore.Info{}, wrap("commit", u.key, err)
	}
	if err := u.complete(); err != nil {
		return objstore.Info{}, wrap("commit", u.key, err)
	}
	return objstore.Info{Key: u.key, Size: u.size}, nil
}

func (u *upload) complete() error {
	if len(u.blocks) == 0 {
		return u.store.put(u.ctx, u.key, u.buf, nil)
	}
	if len(u.buf) > 0 {
		if err := u.flush(); err != nil {
			return err
		}
	}
	return u.store.o.Write(u.ctx, func(ctx context.Context) error {
		_, err := u.client.CommitBlockList(ctx, u.blocks, &blockblob.CommitBlockListOptions{})
		return err
	})
}

// Abort implements [objstore.Upload].
func (u *upload) Abort() error {
	u.ended, u.buf = true, nil
	return nil
}
