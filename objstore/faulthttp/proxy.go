package faulthttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Fault is what happens to one request. The zero Fault lets it pass.
type Fault struct {
	Delay  time.Duration // waited first, or until the client has gone
	Strip  string        // name of a header that is taken out of the request
	Before int           // status sent in place of doing the request
	After  int           // status sent after doing it
	Drop   bool          // the connection is cut after doing it
	Cut    bool          // the body of the answer ends in the middle, and the connection with it
	Code   string        // of the error document of Before and After
}

// Times is a fault n times.
func Times(n int, f Fault) []Fault {
	faults := make([]Fault, n)
	for i := range faults {
		faults[i] = f
	}
	return faults
}

// Match tells which requests faults are for.
type Match func(r *http.Request) bool

// All matches every request.
func All(*http.Request) bool { return true }

// Method matches requests of one method.
func Method(name string) Match { return func(r *http.Request) bool { return r.Method == name } }

// Proxy is a handler with faults. It may be called concurrently.
type Proxy struct {
	next  http.Handler
	match Match

	mu     sync.Mutex
	faults []Fault
	always func(r *http.Request) Fault
	seen   int
}

// New puts faults before next. They are taken in order, one for each request that matches; when they are used up
// all is well.
func New(next http.Handler, match Match, faults ...Fault) *Proxy {
	return &Proxy{next: next, match: match, faults: faults}
}

// Always gives every request that matches, and has no fault of its own, the fault that f answers.
func (p *Proxy) Always(f func(r *http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always = f
}

// Requests is how many requests have matched.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.take(r)
	if !wait(r, f.Delay) {
		panic(http.ErrAbortHandler)
	}
	if f.Strip != "" {
		r.Header.Del(f.Strip)
	}
	switch {
	case f.Before != 0:
		_, _ = io.Copy(io.Discard, r.Body) // the connection stays usable
		refuse(w, f.Before, f.Code)
	case f.After != 0 || f.Drop || f.Cut:
		done := httptest.NewRecorder()
		p.next.ServeHTTP(done, r)
		spoil(w, f, done)
	default:
		p.next.ServeHTTP(w, r)
	}
}

func (p *Proxy) take(r *http.Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.match(r) {
		return Fault{}
	}
	p.seen++
	if len(p.faults) > 0 {
		f := p.faults[0]
		p.faults = p.faults[1:]
		return f
	}
	if p.always != nil {
		return p.always(r)
	}
	return Fault{}
}

func wait(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

func spoil(w http.ResponseWriter, f Fault, done *httptest.ResponseRecorder) {
	switch {
	case f.After != 0:
		refuse(w, f.After, f.Code)
	case f.Cut:
		for name, values := range done.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(done.Body.Len()))
		w.WriteHeader(done.Code)
		_, _ = w.Write(done.Body.Bytes()[:done.Body.Len()/2]) // whoever tests looks at the other end
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler) // cuts the connection
	}
}

// refuse answers with an error in the forms that the services have: S3's document, Azure's header, a status for GCS.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>injected</Message></Error>") // whoever tests looks at the other end
}

// To is a handler that passes requests on to the server at base, the header Host, which signatures cover, as it is.
// When the server does not answer, the connection of the client is cut.
func To(base *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}
