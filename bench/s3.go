package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/foldline/foldline/heads"
	"github.com/foldline/foldline/internal/keys"
	"github.com/foldline/foldline/lance"
	"github.com/foldline/foldline/objstore"
	"github.com/foldline/foldline/objstore/faulthttp"
	"github.com/foldline/foldline/objstore/s3store"
)

// What each request to the S3 server waits: the medians of a bucket in the same region.
const (
	putLatency = 28 * time.Millisecond // PUT, POST, DELETE
	getLatency = 25 * time.Millisecond // GET, HEAD and LIST
)

// S3Config is the measurement of publishes through the S3 protocol.
type S3Config struct {
	Dir      string // emptied and used, for the log
	Tables   []int  // tables that a fold touches; default 1, 3, 8
	Folds    int    // folds that are measured after two that are not; default 25
	Rows     int    // rows for each table and fold; default 100
	Progress func(string)
}

func (c *S3Config) ensureDefaults() {
	p := PublishConfig{Tables: c.Tables, Folds: c.Folds, Rows: c.Rows, Progress: c.Progress}
	if p.Folds == 0 {
		p.Folds = 25
	}
	p.ensureDefaults()
	c.Tables, c.Folds, c.Rows, c.Progress = p.Tables, p.Folds, p.Rows, p.Progress
}

// S3Publish measures a fold with its publish, from the start of the fold until it is visible, on an S3 server that holds
// up each request: in milliseconds, and in round trips, the longest chain of requests one after the other. Beside it, on
// the same server, the bare commit of one Lance table: data file, manifest, LIST.
func S3Publish(ctx context.Context, c S3Config) (figures []Figure, err error) {
	c.ensureDefaults()
	for _, tables := range c.Tables {
		f, err := c.measure(ctx, tables)
		if err != nil {
			return nil, fmt.Errorf("%d tables: %w", tables, err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

func (c S3Config) measure(ctx context.Context, tables int) (figures []Figure, err error) {
	if err := os.RemoveAll(c.Dir); err != nil {
		return nil, err
	}
	s, err := startS3(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	l, err := StartLine(ctx, LineConfig{Dir: c.Dir, Tables: tables, Store: s.others, Wrap: func(objstore.Store) objstore.Store { return s.store }})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	publish := PublishConfig{Rows: c.Rows}
	var ours, peer span
	for fold := range c.Folds + 2 {
		if err := publish.write(ctx, l, fold); err != nil {
			return nil, err
		}
		s.reset()
		start := time.Now()
		report, err := l.FoldOnce(ctx)
		if err != nil {
			return nil, err
		}
		if report.Tables != tables {
			return nil, fmt.Errorf("%d of %d tables committed", report.Tables, tables)
		}
		if visible := l.Visible(); fold >= 2 {
			ours.add(visible.Sub(start), s.chain(visible))
		}
	}
	bare, err := newBareTable(ctx, s.store)
	if err != nil {
		return nil, err
	}
	for range c.Folds {
		s.reset()
		start := time.Now()
		if err := bare.commit(ctx, c.Rows); err != nil {
			return nil, err
		}
		peer.add(time.Since(start), s.chain(time.Now()))
	}
	return c.figures(tables, ours, peer), nil
}

func (c S3Config) figures(tables int, ours, peer span) []Figure {
	what := fmt.Sprintf("p50 from the start of a fold until it is visible, %d tables touched, %d rows each, S3 with %d/%d ms a PUT/GET or LIST; peer: the bare commit of one table",
		tables, c.Rows, putLatency.Milliseconds(), getLatency.Milliseconds())
	id := "s3-publish-round-trips"
	if tables != 3 {
		id = fmt.Sprintf("%s-%d", id, tables)
	}
	figures := []Figure{
		Report(id, "requests one after the other, "+what, median(ours.chains), "round trips").Beside(median(peer.chains)),
		Report(id+"-ms", what, median(ours.ms), "ms").Beside(median(peer.ms)),
	}
	c.Progress(fmt.Sprintf("S3, publish of %d tables: %.4g round trips, %.4g ms; a bare commit: %.4g, %.4g ms",
		tables, figures[0].Ours, figures[1].Ours, *figures[0].Peer, *figures[1].Peer))
	return figures
}

// span are durations and chains of several measurements.
type span struct{ ms, chains []float64 }

func (s *span) add(d time.Duration, chain int) {
	s.ms = append(s.ms, float64(d.Microseconds())/1000)
	s.chains = append(s.chains, float64(chain))
}

// s3Server is an S3 server in this process that holds up each request, and remembers when those through store began and ended. The ingester's go through others:
// it reads the heads that were published while the next fold is at work, which no fold waits for.
type s3Server struct {
	store, others *s3store.Store
	servers       []*httptest.Server

	mu       sync.Mutex
	requests []interval
}

type interval struct{ from, to time.Time }

func startS3(ctx context.Context) (*s3Server, error) {
	const bucket = "bench"
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		return nil, err
	}
	s := &s3Server{}
	slow := faulthttp.New(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server(), faulthttp.All)
	slow.Always(func(r *http.Request) faulthttp.Fault {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return faulthttp.Fault{Delay: getLatency}
		}
		return faulthttp.Fault{Delay: putLatency}
	})
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"} {
		if err := os.Setenv(name, value); err != nil { // the server checks no key, and the chain wants some
			return nil, err
		}
	}
	open := func(handler http.Handler) (*s3store.Store, error) {
		server := httptest.NewServer(handler)
		s.servers = append(s.servers, server)
		o := s3store.Options{Endpoint: server.URL, Region: "us-east-1"}
		o.Bucket = bucket
		return s3store.Open(ctx, o)
	}
	var err, othersErr error
	s.store, err = open(s.timed(slow))
	s.others, othersErr = open(slow)
	return s, errors.Join(err, othersErr)
}

// timed notes when each request began and ended.
func (s *s3Server) timed(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := time.Now()
		inner.ServeHTTP(w, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, interval{from, time.Now()})
	})
}

func (s *s3Server) close() {
	for _, server := range s.servers {
		server.Close()
	}
}

func (s *s3Server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// chain is the largest number of requests, begun before a moment, of which each began after the one before had ended.
func (s *s3Server) chain(before time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.requests, func(a, b interval) int { return a.to.Compare(b.to) })
	n, end := 0, time.Time{}
	for _, r := range s.requests {
		if r.from.Before(before) && !r.from.Before(end) {
			n, end = n+1, r.to
		}
	}
	return n
}

// bareTable is a Lance table outside of any graph, committed to without record, heads or log.
type bareTable struct {
	table *lance.Table
	rows  int
}

func newBareTable(ctx context.Context, store objstore.Store) (*bareTable, error) {
	schema, err := heads.ArrowSchema(columns())
	if err != nil {
		return nil, err
	}
	s, err := lance.NewSchema(schema, []string{"id"})
	if err != nil {
		return nil, err
	}
	table, err := lance.Create(ctx, store, "bare.lance", s, lance.CreateOptions{})
	return &bareTable{table: table}, err
}

// commit adds new rows with their key filter.
func (b *bareTable) commit(ctx context.Context, rows int) error {
	rec := array.NewRecordBuilder(memory.DefaultAllocator, b.table.Schema().Arrow())
	defer rec.Release()
	update := &lance.Update{Filter: &lance.KeyFilter{FieldIDs: b.table.Schema().PrimaryKeyFieldIDs()}}
	for range rows {
		b.rows++
		id := fmt.Sprintf("bare-%012d", b.rows)
		rec.Field(0).(*array.StringBuilder).Append(id)
		rec.Field(1).(*array.Int64Builder).Append(int64(b.rows))
		rec.Field(2).(*array.Float64Builder).Append(float64(b.rows))
		rec.Field(3).(*array.StringBuilder).Append(id)
		update.Filter.Exact = append(update.Filter.Exact, keys.Hash([]byte(id)))
	}
	record := rec.NewRecord()
	defer record.Release()
	w := b.table.NewFragmentWriter(ctx, lance.WriteOptions{})
	if err := w.Write(record); err != nil {
		return errors.Join(err, w.Abort())
	}
	var err error
	if update.NewFragments, err = w.Finish(); err != nil {
		return err
	}
	done, err := b.table.Commit(ctx, lance.NewTransaction(b.table, update), lance.CommitOptions{})
	b.table = done.Table
	return err
}
