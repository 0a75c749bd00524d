package hostcalls

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
)

// MaxResult and MaxLog bound what a guest may say about itself, in bytes.
const (
	MaxResult = 1 << 20
	MaxLog    = 8 << 10
)

type nothing struct{}

var timeNow = define("time_now", 0, caps.Time, gated[nothing]{
	decode:  func([]string) (nothing, error) { return nothing{}, nil },
	touches: func(nothing) (caps.Request, string) { return caps.Request{Family: caps.Time, Name: "*"}, "" },
	do: func(_ context.Context, h *Host, _ gate.Permit, _ nothing) ([]byte, error) {
		h.out = strconv.AppendInt(h.out[:0], h.cfg.Now(), 10)
		return h.out, nil
	},
})

var logMessage = ungated("log", 2, func(_ context.Context, h *Host, in []string) ([]byte, error) {
	level, message := in[0], in[1]
	switch level {
	case "debug", "info", "warn", "error":
	default:
		return nil, &Fail{Errno: Inval, Hint: "level is debug, info, warn or error"}
	}
	if len(message) > MaxLog {
		return nil, &Fail{Errno: TooBig, Hint: "a log message is at most 8 KiB"}
	}
	if !utf8.ValidString(message) {
		return nil, &Fail{Errno: Inval, Hint: "a log message is UTF-8"}
	}
	h.cfg.Log(strings.Clone(level), h.scrubText(strings.Clone(message)))
	return nil, nil
})

var setResult = ungated("result", 1, func(ctx context.Context, h *Host, in []string) ([]byte, error) {
	if len(in[0]) > MaxResult {
		return nil, &Fail{Errno: TooBig, Hint: "a result is at most 1 MiB"}
	}
	if err := strictjson.Check(bytesOf(in[0])); err != nil {
		return nil, &Fail{Errno: Inval, Hint: "result: " + err.Error()}
	}
	if err := h.returned.Set(ctx, len(in[0])); err != nil {
		return nil, err
	}
	h.result = []byte(in[0])
	return nil, nil
})

// MaxInput bounds what a guest is given for one turn, in bytes.
const MaxInput = 1 << 20

// turnNext touches nothing beyond the run, so nothing is asked for; a layer can
// hide it, and then it ends no turn.
var turnNext = ungated("turn_next", 0, func(ctx context.Context, h *Host, _ []string) ([]byte, error) {
	if h.cfg.Turns == nil {
		return nil, errNoInput()
	}
	input, err := h.cfg.Turns.Next(ctx)
	if errors.Is(err, io.EOF) {
		return nil, errNoInput()
	}
	if err == nil {
		err = h.TakeInInput() // before the guest has it
	}
	return input, err
})

func errNoInput() error { return &Fail{Errno: Noent, Hint: "there is no further input"} }

// Bound holds the run to l from now on: what its budget counts, and what each
// family asks for when it is called.
func (h *Host) Bound(l caps.Limits) {
	h.cfg.Limits = l
	h.budget.Bound(l)
}
