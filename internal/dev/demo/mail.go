package main

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A mail is one message as the API of the mail server takes it.
type mail struct {
	From    string `json:"from,omitempty"`
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// A mailServer takes mails by HTTP, as mail services do: POST /v1/messages with
// a bearer token.
type mailServer struct {
	token string

	mu   sync.Mutex
	sent []mail
	ids  map[string]int // by idempotency key
}

// ServeHTTP answers a request.
func (s *mailServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/messages":
		reply(w, http.StatusNotFound, map[string]string{"error": "POST /v1/messages"})
		return
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
		reply(w, http.StatusUnauthorized, map[string]string{"error": "the token is not known"})
		return
	}
	var m mail
	if err := strictjson.Decode(r.Body, 1<<20, &m); err != nil || m.To == "" {
		reply(w, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("a mail has to, subject and text (%v)", err)})
		return
	}
	reply(w, http.StatusAccepted, map[string]string{"id": fmt.Sprintf("mail-%d",
		s.take(m, r.Header.Get("Idempotency-Key")))})
}

// take keeps a mail, once for each idempotency key, and returns its number.
func (s *mailServer) take(m mail, key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, again := s.ids[key]; again && key != "" {
		return n
	}
	s.sent = append(s.sent, m)
	if s.ids == nil {
		s.ids = map[string]int{}
	}
	s.ids[key] = len(s.sent)
	return len(s.sent)
}

// outbox is what was sent so far.
func (s *mailServer) outbox() []mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]mail(nil), s.sent...)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone hears nothing
}
