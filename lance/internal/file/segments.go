package file

import (
	"context"
	"sort"

	"golang.org/x/sync/errgroup"

	"github.com/foldline/foldline/lance/internal/encoding"
)

const (
	// coalesceGap is how many unwanted bytes are read to save a request, maxRequestBytes where requests are
	// no longer merged, parallelRequests how many run at a time.
	coalesceGap      = 4 << 10
	maxRequestBytes  = 8 << 20
	parallelRequests = 8
)

// segment is a run of bytes that has been read.
type segment struct {
	off  int64
	data []byte
}

func (s segment) end() int64 { return s.off + int64(len(s.data)) }

// segments are the bytes at hand for one cursor or one take. They implement encoding.Loaded.
type segments struct {
	r     *Reader
	parts []segment // by offset; they may overlap
}

// find returns the part that covers a span.
func (s *segments) find(span encoding.Span) ([]byte, bool) {
	if b, ok := cut(s.r.tail, span); ok {
		return b, true
	}
	for i := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].off > span.Off }) - 1; i >= 0; i-- {
		if b, ok := cut(s.parts[i], span); ok {
			return b, true
		}
	}
	return nil, false
}

func cut(s segment, span encoding.Span) ([]byte, bool) {
	if span.Off < s.off || span.End() > s.end() {
		return nil, false
	}
	return s.data[span.Off-s.off:][:span.Len:span.Len], true
}

// Bytes implements encoding.Loaded.
func (s *segments) Bytes(span encoding.Span) ([]byte, error) {
	if span.Len == 0 {
		return nil, nil
	}
	if b, ok := s.find(span); ok {
		return b, nil
	}
	return nil, encoding.Corruptf("bytes %d+%d were not asked for", span.Off, span.Len)
}

// load reads the spans that are not at hand, neighbours together.
func (s *segments) load(ctx context.Context, spans []encoding.Span) error {
	missing := make([]encoding.Span, 0, len(spans))
	for _, span := range spans {
		if _, ok := s.find(span); !ok && span.Len > 0 {
			missing = append(missing, span)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	requests := coalesce(missing)
	parts := make([]segment, len(requests))
	if len(requests) == 1 {
		data, err := s.r.get(ctx, requests[0])
		parts[0] = segment{requests[0].Off, data}
		return s.add(parts, err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRequests)
	for i, q := range requests {
		g.Go(func() error {
			data, err := s.r.get(ctx, q)
			parts[i] = segment{q.Off, data}
			return err
		})
	}
	return s.add(parts, g.Wait())
}

func (s *segments) add(parts []segment, err error) error {
	if err != nil {
		return err
	}
	s.parts = append(s.parts, parts...)
	sort.Slice(s.parts, func(i, j int) bool { return s.parts[i].off < s.parts[j].off })
	return nil
}

// coalesce merges spans that lie close together.
func coalesce(spans []encoding.Span) []encoding.Span {
	sort.Slice(spans, func(i, j int) bool { return spans[i].Off < spans[j].Off })
	out := spans[:1]
	for _, span := range spans[1:] {
		last := &out[len(out)-1]
		end := max(last.End(), span.End())
		if span.Off <= last.End()+coalesceGap && (end-last.Off <= maxRequestBytes || end == last.End()) {
			last.Len = end - last.Off
			continue
		}
		out = append(out, span)
	}
	return out
}

// get reads one span of the file.
func (r *Reader) get(ctx context.Context, span encoding.Span) ([]byte, error) {
	data, err := r.src.GetRange(ctx, span.Off, span.Len)
	if err == nil && int64(len(data)) != span.Len {
		err = r.corrupt("file", span.Off, "%d bytes instead of %d", len(data), span.Len)
	}
	return data, err
}

// bytes is what is held.
func (s *segments) bytes() int64 {
	n := int64(0)
	for _, p := range s.parts {
		n += int64(len(p.data))
	}
	return n
}
