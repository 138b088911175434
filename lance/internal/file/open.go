package file

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/foldline/foldline/lance/internal/encoding"
	"github.com/foldline/foldline/lance/internal/pb"
	"github.com/foldline/foldline/lance/internal/pb/pb20"
	"github.com/foldline/foldline/lance/internal/schema"
)

// tailBytes is read first: it holds the metadata of most files, and all of a small file.
const tailBytes = 64 << 10

// maxFileRows bounds the rows of a file: row offsets are of 32 bits.
const maxFileRows = 1 << 32

// OpenReader reads the file's footer, schema and column metadata: one request for most files.
func OpenReader(ctx context.Context, src Source, opts ReaderOptions) (*Reader, error) {
	opts.ensureDefaults()
	r := &Reader{src: src, name: opts.Name, opts: opts, size: opts.Size}
	if err := r.readTail(ctx); err != nil {
		return nil, err
	}
	if err := r.readFooter(ctx); err != nil {
		return nil, err
	}
	if err := r.readDescriptor(ctx); err != nil {
		return nil, err
	}
	return r, r.readColumns()
}

func (r *Reader) readTail(ctx context.Context) error {
	if r.size == 0 {
		data, size, err := r.src.GetTail(ctx, tailBytes)
		if err != nil {
			return err
		}
		if int64(len(data)) > size {
			return r.corrupt("file", 0, "a tail of %d bytes of %d", len(data), size)
		}
		r.size, r.tail = size, segment{size - int64(len(data)), data}
		return r.checkSize()
	}
	if err := r.checkSize(); err != nil {
		return err
	}
	n := min(r.size, tailBytes)
	data, err := r.get(ctx, encoding.Span{Off: r.size - n, Len: n})
	r.tail = segment{r.size - n, data}
	return err
}

func (r *Reader) checkSize() error {
	if r.size < footerBytes || len(r.tail.data) > 0 && len(r.tail.data) < footerBytes {
		return r.corrupt("footer", 0, "a file of %d bytes", r.size)
	}
	return nil
}

// readFooter reads the footer and makes sure that everything behind the pages is at hand.
func (r *Reader) readFooter(ctx context.Context) error {
	at := r.size - footerBytes
	b, _ := cut(r.tail, encoding.Span{Off: at, Len: footerBytes})
	f, err := parseFooter(b, r.size)
	if errors.Is(err, ErrUnsupported) {
		return fmt.Errorf("file: %s: %w", r.name, err)
	}
	if err != nil {
		return &CorruptError{File: r.name, Region: "footer", Offset: at, Err: err}
	}
	r.footer = f
	return r.extendTail(ctx, f.columnMetadata)
}

// extendTail makes the tail begin at off or before.
func (r *Reader) extendTail(ctx context.Context, off int64) error {
	if off >= r.tail.off {
		return nil
	}
	head, err := r.get(ctx, encoding.Span{Off: off, Len: r.tail.off - off})
	if err != nil {
		return err
	}
	r.tail = segment{off, append(head, r.tail.data...)}
	return nil
}

// tableEntry is entry i of a table of positions and sizes; what it names lies before limit.
func (r *Reader) tableEntry(table int64, i int, limit int64) (encoding.Span, error) {
	b, _ := cut(r.tail, encoding.Span{Off: table + int64(i)*16, Len: 16})
	off, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if off > uint64(limit) || size > uint64(limit)-off {
		return encoding.Span{}, r.corrupt("offset table", table+int64(i)*16, "%d+%d lies beyond %d", off, size, limit)
	}
	return encoding.Span{Off: int64(off), Len: int64(size)}, nil
}

func (r *Reader) readDescriptor(ctx context.Context) error {
	if r.footer.globals == 0 {
		return r.corrupt("footer", r.size-footerBytes, "no file descriptor")
	}
	at, err := r.tableEntry(r.footer.globalOffsets, 0, r.footer.columnMetadata)
	if err != nil {
		return err
	}
	if err := r.extendTail(ctx, at.Off); err != nil {
		return err
	}
	b, _ := cut(r.tail, at)
	var d pb.FileDescriptor
	if err := proto.Unmarshal(b, &d); err != nil {
		return r.corrupt("file descriptor", at.Off, "%w", err)
	}
	if d.GetLength() > maxFileRows {
		return r.corrupt("file descriptor", at.Off, "%d rows", d.GetLength())
	}
	r.rows = int64(d.GetLength())
	if r.fields, err = schema.FromProto(d.GetSchema().GetFields()); err != nil {
		return r.corrupt("file descriptor", at.Off, "%w", err)
	}
	return nil
}

func (r *Reader) readColumns() error {
	for i := range int(r.footer.columns) {
		at, err := r.tableEntry(r.footer.columnOffsets, i, r.footer.columnOffsets)
		if err != nil {
			return err
		}
		b, ok := cut(r.tail, at)
		if !ok {
			return r.corrupt("offset table", r.footer.columnOffsets, "column %d has its metadata at %d", i, at.Off)
		}
		c, err := r.readColumn(b)
		if err != nil {
			return r.place(err, fmt.Sprintf("column %d metadata", i), at.Off)
		}
		r.columns = append(r.columns, c)
	}
	return nil
}

func (r *Reader) readColumn(b []byte) (*column, error) {
	var m pb.ColumnMetadata
	if err := proto.Unmarshal(b, &m); err != nil {
		return nil, encoding.Corruptf("%w", err)
	}
	var enc pb20.ColumnEncoding
	if err := openEncoding(m.GetEncoding(), urlColumn, &enc); err != nil {
		return nil, err
	}
	if _, ok := enc.GetColumnEncoding().(*pb20.ColumnEncoding_Values); !ok {
		return nil, encoding.Unsupportedf("column encoding that is not plain values")
	}
	c := &column{}
	for i, p := range m.GetPages() {
		page, err := r.readPageInfo(p)
		if err != nil {
			return nil, fmt.Errorf("page %d: %w", i, err)
		}
		page.first = c.rows
		if c.rows += page.rows; c.rows > maxFileRows {
			return nil, encoding.Corruptf("more than %d rows", int64(maxFileRows))
		}
		if page.rows > 0 {
			c.pages = append(c.pages, page)
		}
	}
	return c, nil
}

// readPageInfo checks that the buffers of a page lie in front of the metadata.
func (r *Reader) readPageInfo(p *pb.ColumnMetadata_Page) (pageInfo, error) {
	info := pageInfo{rows: int64(p.GetLength()), encoding: p.GetEncoding()}
	offsets, sizes := p.GetBufferOffsets(), p.GetBufferSizes()
	if p.GetLength() > maxFileRows || len(offsets) != len(sizes) {
		return info, encoding.Corruptf("%d rows in %d buffers of %d sizes", p.GetLength(), len(offsets), len(sizes))
	}
	limit := uint64(r.footer.columnMetadata)
	for i, off := range offsets {
		if off > limit || sizes[i] > limit-off {
			return info, encoding.Corruptf("buffer %d at %d+%d lies beyond %d", i, off, sizes[i], limit)
		}
		info.buffers = append(info.buffers, encoding.Span{Off: int64(off), Len: int64(sizes[i])})
		info.bytes += int64(sizes[i])
	}
	return info, nil
}
