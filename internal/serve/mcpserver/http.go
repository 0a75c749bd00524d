package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/service"
)

// Of the protocol: from this version on there are no sessions, and each request
// stands for itself.
const withoutSessions = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

type sessionKey struct{}

func sdkOf(r *http.Request) *mcp.Server {
	ss, _ := r.Context().Value(sessionKey{}).(*session)
	if ss == nil {
		return nil
	}
	return ss.sdk
}

// handlers makes those of the SDK. Host and Origin are judged before them, by
// whoever proves who asks.
func (s *Server) handlers() {
	o := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: mostMessage}
	s.legacy = mcp.NewStreamableHTTPHandler(sdkOf, &o)
	o.Stateless, o.PropagateRequestCancellation = true, true
	s.modern = mcp.NewStreamableHTTPHandler(sdkOf, &o)
}

// ServeHTTP implements [http.Handler]. Who asks is in the context
// ([service.CallerOf]).
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := service.CallerOf(r.Context())
	if c == nil || c.Tenant == "" {
		http.Error(w, "nobody was proved to ask", http.StatusUnauthorized)
		return
	}
	n, err := s.read(r, c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	leave, err := s.asked.Take(c.Key(), int64(n))
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are under way; wait for one to end", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	defer s.posted(r)()
	w = patiently(w, s.opt.Patience)
	switch id := r.Header.Get(sessionHeader); {
	case r.Header.Get(versionHeader) >= withoutSessions:
		s.once(w, r, c)
	case id != "":
		s.again(w, r, c, id)
	case r.Method == http.MethodPost:
		s.first(w, r, c)
	default:
		s.legacy.ServeHTTP(w, r) // which says what is wrong
	}
}

// read reads the message of a request, which has come whole, and says how many it
// is: a list is as many requests. None is one.
func (s *Server) read(r *http.Request, c *service.Caller) (int, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return 1, nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostMessage+1))
	switch {
	case err != nil:
		return 0, errors.New("the message did not come whole; send it again")
	case len(text) > mostMessage:
		return 0, errors.New("the message is too long; one has at most 8 MiB")
	}
	r.Body = io.NopCloser(bytes.NewReader(text))
	version := ""
	if ss := s.find(c, r.Header.Get(sessionHeader)); ss != nil {
		version = ss.spoken()
	}
	list, err := messages(text, version)
	if err != nil {
		return 0, err
	}
	for _, raw := range list {
		if err := params(raw); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// find is the session of an id, if it is the caller's.
func (s *Server) find(c *service.Caller, id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ss := s.sessions[id]; ss != nil && ss.key == c.Key() {
		return ss
	}
	return nil
}

// once serves a request that stands for itself. What it began ends with it.
func (s *Server) once(w http.ResponseWriter, r *http.Request, c *service.Caller) {
	ss := s.session(r.Context(), c)
	defer ss.calls.Wait()
	defer ss.end()
	s.modern.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, ss)))
}

// first serves a request that begins a session.
func (s *Server) first(w http.ResponseWriter, r *http.Request, c *service.Caller) {
	ss := s.session(context.WithoutCancel(r.Context()), c)
	ss.id = rand.Text()
	if !s.enter(ss) {
		ss.end()
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many sessions are in use; end one (DELETE), or wait until one is idle",
			http.StatusServiceUnavailable)
		return
	}
	s.legacy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, ss)))
	conn := ss.conn.Load()
	if conn == nil { // it did not become one
		s.leave(ss)
		return
	}
	s.left(ss)
	ss.watching(ss.ctx)
	go func() {
		_ = conn.Wait()
		s.leave(ss)
	}()
}

// again serves a request of a session. One of another caller is not there.
func (s *Server) again(w http.ResponseWriter, r *http.Request, c *service.Caller, id string) {
	s.mu.Lock()
	ss := s.sessions[id]
	if ss == nil || ss.key != callerKey(c) {
		s.mu.Unlock()
		http.Error(w, "there is no such session; begin one", http.StatusNotFound)
		return
	}
	ss.open++
	ss.timer.Stop()
	s.mu.Unlock()
	defer s.left(ss)
	ss.caller.Store(c) // as it was proved now
	if r.Method == http.MethodDelete {
		ss.cancel() // what is under way is not wanted any more
	}
	s.legacy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, ss)))
}

// enter takes a session in, if there is room. Whoever has no room left gives up
// the session that they asked of longest ago: clients rarely end theirs.
func (s *Server) enter(ss *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := 0
	var idlest *session
	for _, other := range s.sessions {
		if other.key != ss.key {
			continue
		}
		own++
		if other.open == 0 && (idlest == nil || other.left < idlest.left) {
			idlest = other
		}
	}
	full := len(s.sessions) >= s.opt.Sessions || own >= max(1, s.opt.Sessions/partOfCallers)
	if s.ended || full && idlest == nil {
		return false
	}
	if full {
		s.forget(idlest)
		idlest.end()
	}
	s.sessions[ss.id] = ss
	ss.open = 1
	ss.timer = time.AfterFunc(s.opt.Idle, func() { s.idle(ss) })
	ss.timer.Stop()
	return true
}

// forget is a session that is over. The caller holds the lock.
func (s *Server) forget(ss *session) {
	delete(s.sessions, ss.id)
	ss.timer.Stop()
}

// left notes that a request has ended. A session that is over has no time to be
// idle: its timer would hold all of it.
func (s *Server) left(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	ss.left = s.turn
	if ss.open--; ss.open == 0 && s.sessions[ss.id] == ss {
		ss.timer.Reset(s.opt.Idle)
	}
}

// idle ends a session that nobody has asked of for long.
func (s *Server) idle(ss *session) {
	s.mu.Lock()
	idle := ss.open == 0
	s.mu.Unlock()
	if idle {
		s.leave(ss)
	}
}

// leave forgets a session, and ends what it began.
func (s *Server) leave(ss *session) {
	s.mu.Lock()
	s.forget(ss)
	s.mu.Unlock()
	ss.end()
}
