package mcpserver

import (
	"crypto/rand"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"runloop.dev/rlp/internal/serve/service"
)

// A post is a request over HTTP, by which the answers to its calls are sent. The
// SDK gives a call no context of its request, but its head.
type post struct {
	cut func()

	mu   sync.Mutex
	over bool     // its answers are sent, or its client is gone
	done []func() // what is over then
}

// postHeader names a post to its calls; what a client says there is nothing.
const postHeader = "Rlp-Post"

// posted makes r known to its calls, until over is called.
func (s *Server) posted(r *http.Request) (over func()) {
	id := rand.Text()
	p := &post{cut: service.CutOf(r.Context())}
	r.Header.Set(postHeader, id)
	s.posts.Store(id, p)
	return func() {
		s.posts.Delete(id)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
		for _, done := range p.done {
			done()
		}
	}
}

// await counts the report of a run for as long as it is sent: until done is called,
// and the request is over that the call came with, if there is one.
func (s *Server) await(req *mcp.CallToolRequest, r *service.Run) (done func()) {
	var p *post
	if req.Extra != nil {
		if found, there := s.posts.Load(req.Extra.Header.Get(postHeader)); there {
			p, _ = found.(*post)
		}
	}
	if p == nil {
		return r.Await(nil)
	}
	sent := r.Await(p.cut)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.over {
			sent()
			return
		}
		p.done = append(p.done, sent)
	}
}
