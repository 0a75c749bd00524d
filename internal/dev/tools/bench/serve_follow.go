package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An event is one of a stream of a run.
type event struct {
	id   uint64
	name string
	data string
	came time.Time
}

// followed has many follow one run, and says how far they are behind it.
func (s *serving) followed(ctx context.Context) {
	id, err := s.begin(ctx, `{"agent":"steps","wait":false}`)
	if err != nil {
		s.count("follow/gaps", err)
		return
	}
	behind, errs := make([][]time.Duration, subscribers), make([]error, subscribers)
	var all sync.WaitGroup
	for i := range subscribers {
		all.Go(func() {
			errs[i] = s.follow(ctx, id, func(e event) {
				var r struct{ TS time.Time }
				if json.Unmarshal([]byte(e.data), &r) == nil && !r.TS.IsZero() {
					behind[i] = append(behind[i], e.came.Sub(r.TS))
				}
			})
			if errs[i] == nil && len(behind[i]) < steps {
				errs[i] = fmt.Errorf("a run of %d steps has %d records", steps, len(behind[i]))
			}
		})
	}
	all.Wait()
	s.count("follow/gaps", errs...)
	if every := slices.Sorted(slices.Values(slices.Concat(behind...))); len(every) > 0 {
		s.sample("follow/p50", millis(at(every, 50)))
		s.sample("follow/p99", millis(at(every, 99)))
	}
}

// followTime is the most that a run is followed for.
const followTime = time.Minute

// follow calls see for each record of a run, until it has ended. Records are
// numbered from 1 on; one that is missing, or comes twice, is an error.
func (s *serving) follow(ctx context.Context, id string, see func(event)) error {
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/runs/"+id+"/events", nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("following %s: %s", id, answer.Status)
	}
	last, ended := uint64(0), false
	err = events(bufio.NewReader(answer.Body), func(e event) error {
		switch {
		case e.name == "end":
			ended = true
			return nil
		case e.id != last+1:
			return fmt.Errorf("run %s: record %d comes behind %d", id, e.id, last)
		}
		last = e.id
		see(e)
		return nil
	})
	if err == nil && !ended {
		err = errors.New("the stream ends before its run")
	}
	return err
}

// events reads a stream of server-sent events to its end.
func events(r *bufio.Reader, see func(event) error) error {
	var e event
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			if line == "" && e == (event{}) {
				return nil // an answer that was cut says so otherwise
			}
			return err
		}
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			if e.id, err = strconv.ParseUint(value, 10, 64); err != nil {
				return err
			}
		case "event":
			e.name = value
		case "data":
			e.data += value
		}
		if line != "\n" && line != "\r\n" {
			continue
		}
		if e != (event{}) {
			e.came = time.Now()
			if err := see(e); err != nil {
				return err
			}
		}
		e = event{}
	}
}
