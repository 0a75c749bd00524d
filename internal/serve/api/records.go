package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/kb"
)

const (
	usualRecords = 100
	mostRecords  = 1000
)

// filterOf reads the parameters of GET /audit.
func (s *server) filterOf(r *http.Request, c *service.Caller) (f kb.Filter, limit uint64, err error) {
	v := r.URL.Query()
	var problems service.FieldErrors
	wrong := func(field, why string) {
		problems = append(problems, service.FieldError{Field: field, Why: why})
	}
	f.Run, f.Agent, f.Decision = v.Get("run"), v.Get("agent"), v.Get("decision")
	if family := v.Get("family"); family != "" {
		name, known, ok := caps.AuditWord(family)
		if !ok {
			wrong("family", "must be a family, such as fs or kb_read, or one of "+strings.Join(known, ", "))
		}
		f.Cap = name
	}
	if f.Run != "" && !isPartOfID(f.Run) {
		wrong("run", "must be the id of a run, or the beginning or the end of one")
	}
	if f.Decision != "" && f.Decision != "allow" && f.Decision != "deny" {
		wrong("decision", "must be allow or deny")
	}
	if text := v.Get("since"); text != "" {
		at, ok := s.since(text)
		if !ok {
			wrong("since", `must be a time such as 2026-11-22T21:30:00Z, or how long ago, such as "90m"`)
		}
		f.SinceMS = at.UnixMilli()
	}
	whole := wantsLines(r)
	usual, most := uint64(usualRecords), uint64(mostRecords)
	if whole {
		usual, most = 0, math.MaxInt32
	}
	limit, err = number(r, "limit", usual, most)
	if err != nil || limit == 0 && !whole {
		wrong("limit", fmt.Sprintf("must be a whole number from 1 to %d", most))
	}
	if f.After, err = number(r, "cursor", 0, math.MaxInt64); err != nil {
		wrong("cursor", "must be next of an earlier answer, or the seq of a record")
	}
	if len(problems) > 0 {
		return f, 0, problems
	}
	if f.Run != "" {
		f.Run, err = service.WholeRun(r.Context(), s.Service, s.Host, c, f.Run)
	}
	return f, limit, err
}

// since is a time, or one so long ago.
func (s *server) since(text string) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	d, err := time.ParseDuration(text)
	return s.Now().Add(-d), err == nil && d >= 0
}

// wantsLines reports whether records are asked for one a line.
func wantsLines(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/x-ndjson")
}

// records is a page of them.
type records struct {
	Records []json.RawMessage `json:"records"`
	Next    string            `json:"next,omitempty"`   // as cursor of the next request; "" if there are no more now
	Looked  uint64            `json:"looked,omitempty"` // up to which seq, where there was no time for all
}

// searchTime is how long one request looks for records: those that match few of
// very many are told as far as they were found, with next.
const searchTime = time.Second

// getAudit answers with records of the log in order, as rlp audit export has them.
func (s *server) getAudit(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	f, limit, err := s.filterOf(r, c)
	if err != nil {
		return err
	}
	log, err := s.Host.Log(r.Context(), c)
	if err != nil {
		return err
	}
	if wantsLines(r) {
		f.Page = service.PageOfReader
		leave, err := s.openStream(c)
		if err != nil {
			return err
		}
		defer leave()
		return s.lines(w, r, log, f, limit)
	}
	leave, err := openPage(s, r, c)
	if err != nil {
		return err
	}
	defer leave()
	page, size := records{Records: []json.RawMessage{}}, 0
	until := s.Now().Add(searchTime)
	f.Search = &kb.Search{Looked: func(seq uint64) bool {
		if s.Now().Before(until) {
			return true
		}
		page.Looked, page.Next = seq, strconv.FormatUint(seq, 10)
		return false
	}}
	for rec, err := range exported(r.Context(), log, f) {
		if err != nil {
			return asAway(err)
		}
		if uint64(len(page.Records)) == limit || size >= mostPage {
			page.Next = strconv.FormatUint(f.After, 10)
			break
		}
		page.Records = append(page.Records, rec.line)
		size += len(rec.line)
		f.After = rec.seq
	}
	s.json(w, r, http.StatusOK, page)
	return nil
}

// An exportedRecord is a line of the log and its number.
type exportedRecord struct {
	seq  uint64
	line []byte
}

func exported(ctx context.Context, log service.Log, f kb.Filter) iter.Seq2[exportedRecord, error] {
	return func(yield func(exportedRecord, error) bool) {
		for rec, err := range log.Audit(ctx, f) {
			if err != nil {
				yield(exportedRecord{}, err)
				return
			}
			line, err := rec.AppendJSON(nil)
			if !yield(exportedRecord{rec.Seq, line}, err) || err != nil {
				return
			}
		}
	}
}

// lines answers with one record a line, as many as there are. A log that fails
// below them breaks the answer off, so that it does not look whole.
func (s *server) lines(w http.ResponseWriter, r *http.Request, log service.Log, f kb.Filter, limit uint64) error {
	w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	out := s.stream(w)
	n := uint64(0)
	for line, err := range log.Lines(r.Context(), f) {
		switch {
		case err != nil && n == 0:
			return asAway(err)
		case err != nil:
			panic(http.ErrAbortHandler)
		}
		if n++; limit > 0 && n > limit {
			break
		}
		if out.write(append(append([]byte{}, line...), '\n')) != nil {
			return nil // nobody reads
		}
	}
	out.end()
	return nil
}

// A treeHead is what the log is, in 32 bytes.
type treeHead struct {
	Size uint64 `json:"size"`
	Root string `json:"root"` // base64, as in a checkpoint
}

func (s *server) getHead(w http.ResponseWriter, r *http.Request, c *service.Caller) error {
	log, err := s.Host.Log(r.Context(), c)
	if err != nil {
		return err
	}
	h, err := log.Head(r.Context())
	if err != nil {
		return asAway(err)
	}
	s.json(w, r, http.StatusOK, treeHead{h.Size, base64.StdEncoding.EncodeToString(h.Root[:])})
	return nil
}

// ended reports whether a run of the log has nothing behind its record numbered n.
func (s *server) ended(ctx context.Context, c *service.Caller, id string, n uint64) (bool, error) {
	if _, err := s.Service.Run(ctx, c, id); !errors.Is(err, service.ErrNotFound) {
		return false, err
	}
	sum, err := s.summary(ctx, c, id)
	if err != nil {
		return false, err
	}
	return audit.Ends(sum.End) && n >= sum.Records, nil
}
