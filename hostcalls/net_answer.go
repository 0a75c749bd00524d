package hostcalls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/lend"
	"runloop.dev/rlp/internal/base/strictjson"
)

// smallAnswer is how far an answer's memory grows by doubling, in bytes. Beyond,
// there is one piece that holds the largest, of which only what is written is
// ever touched.
const smallAnswer = 1 << 20

// answer is the response of the call: a head's length, the head, the body,
// without this run's secrets. The body is read to where it stays.
func (x *exchange) answer(resp *http.Response) ([]byte, error) {
	if resp.StatusCode >= 400 {
		x.h.remark = "answered " + strconv.Itoa(resp.StatusCode)
	}
	out := x.appendHead(append(x.h.out[:0], 0, 0, 0, 0), resp)
	binary.LittleEndian.PutUint32(out, uint32(len(out)-4))
	if resp.Body == http.NoBody || x.method == http.MethodHead {
		return out, nil
	}
	if how := resp.Header["Content-Encoding"]; len(how) > 0 && !(len(how) == 1 && strings.EqualFold(how[0], "identity")) &&
		x.h.knows() {
		return nil, &Fail{Errno: IO, Hint: fmt.Sprintf("the answer is encoded (%s) as nobody asked for, and cannot be "+
			"looked through for secrets", printable(strings.Join(how, ", ")))}
	}
	skip := len(out)
	room, limited := x.h.room()
	raw := room
	if x.h.knows() { // what counts is what the guest gets, or a limit would tell how long a value is
		raw = min(room+echoed, MaxResponseBody)
	}
	if resp.ContentLength > raw {
		return nil, x.tooLarge(limited)
	}
	out, err := x.read(out, resp, raw)
	if cap(out) <= 2*smallAnswer {
		x.h.out = out
	}
	if body := x.h.scrub(out[skip:]); len(body) != len(out)-skip || len(body) > 0 && &body[0] != &out[skip] {
		out = append(out[:skip:skip], body...)
	}
	x.h.budget.Take(caps.NetBytes, int64(len(out)-skip))
	switch {
	case errors.Is(err, errTooLarge), int64(len(out)-skip) > room:
		return nil, x.tooLarge(limited)
	case err != nil, x.ctx.Err() != nil: // a server that sees the call end can close what it said as if it were whole
		return nil, x.failed(errBroken) // or that its time was over, or its run
	}
	return out, nil
}

// echoed is how much longer an answer may be than what the guest gets of it, in
// bytes: values of secrets that are taken out of it.
const echoed = 1 << 20

// tooLarge refuses a body: by net_bytes, or because no guest is given so much.
func (x *exchange) tooLarge(limited bool) error {
	if limited {
		if _, bounded := budgetRoom(x.h.budget); !bounded {
			x.h.over(caps.NetMaxResponseBytes, MaxResponseBody)
		}
		return x.refuse(caps.BudgetExhausted, "")
	}
	return &Fail{Errno: TooBig, Hint: fmt.Sprintf("the body of an answer is at most %d MiB", MaxResponseBody>>20)}
}

var (
	errBroken   = errors.New("the answer broke off")
	errTooLarge = errors.New("the answer is too large")
)

// appendHead appends the JSON of an answer's status and headers. A header is a
// text; one that came several times is a list.
func (x *exchange) appendHead(out []byte, resp *http.Response) []byte {
	out = append(strconv.AppendInt(append(out, `{"status":`...), int64(resp.StatusCode), 10), `,"headers":{`...)
	names := x.h.net.names[:0]
	for name := range resp.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	x.h.net.names = names
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strictjson.AppendText(out, name), ':')
		values := resp.Header[name]
		if len(values) == 1 {
			out = strictjson.AppendText(out, values[0])
			continue
		}
		for i, v := range values {
			out = strictjson.AppendText(append(out, "[,"[min(i, 1)]), v)
		}
		out = append(out, ']')
	}
	return append(out, "}}"...)
}

// read appends the body, which must not be longer than room.
func (x *exchange) read(out []byte, resp *http.Response, room int64) ([]byte, error) {
	first := int64(4 << 10)
	if resp.ContentLength >= 0 {
		room, first = resp.ContentLength, min(resp.ContentLength, smallAnswer)
	}
	most := len(out) + int(room)
	out = slices.Grow(out, int(first)+1) // and one, so that the end is seen without growing
	for {
		if len(out) == cap(out) {
			out = x.h.net.grow(out, most+1)
		}
		got, err := resp.Body.Read(out[len(out):cap(out)])
		out = out[:len(out)+got]
		if err := x.h.held.Set(x.ctx, len(out)); err != nil {
			return out, err
		}
		switch {
		case len(out) > most:
			return out[:most], errTooLarge
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, err
		}
	}
}

// grow makes room, by doubling while out is small, and then once for the
// largest: a second copy of a large body is never made.
func (n *netState) grow(out []byte, most int) []byte {
	if len(out) < smallAnswer {
		return slices.Grow(out, len(out))
	}
	large := n.spare.Slice(most)
	if large == nil {
		large = make([]byte, 0, most)
		n.spare = lend.SpareOf(large)
	}
	return append(large, out...)
}

// takeInAnswer marks the run when an answer comes from a host that is not
// trusted, whatever its status: an error's text is written by the same hand.
// Each answer on the way of a redirect counts, since it chose the next one.
func (x *exchange) takeInAnswer() error {
	if x.h.cfg.Sources.marks(x.request()) {
		return x.h.takeIn(caps.Net, x.Shown)
	}
	return nil
}
