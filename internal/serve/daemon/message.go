package daemon

import (
	"encoding/binary"
	"errors"
	"strings"
)

const magic = "rlp resident 1\n"

// proofLen is how long the word is that a client reads in the serving process.
const proofLen = 16

// headLen is what stands before the words: magic, kind, proof and two counts.
const headLen = len(magic) + 1 + proofLen + 8

// A Request is what a client asks for.
type Request struct {
	Kind      byte
	Args, Env []string
	proof     [proofLen]byte
}

var (
	errRequest  = errors.New("this is no request")
	errTooLarge = errors.New("more than fits into one request")
)

// encode is the packet of a request.
func (r *Request) encode() ([]byte, error) {
	n := headLen
	for _, words := range [][]string{r.Args, r.Env} {
		if len(words) > MaxWords {
			return nil, errTooLarge
		}
		for _, w := range words {
			n += len(w) + 1
		}
	}
	if n > MaxRequest {
		return nil, errTooLarge
	}
	b := append(make([]byte, 0, n), magic...)
	b = append(append(b, r.Kind), r.proof[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Args)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.Env)))
	for _, words := range [][]string{r.Args, r.Env} {
		for _, w := range words {
			b = append(append(b, w...), 0)
		}
	}
	return b, nil
}

// decode reads a packet. All of it is one request, or it is none.
func decode(packet []byte) (*Request, error) {
	if len(packet) < headLen || len(packet) > MaxRequest || string(packet[:len(magic)]) != magic {
		return nil, errRequest
	}
	r := &Request{Kind: packet[len(magic)]}
	copy(r.proof[:], packet[len(magic)+1:])
	args, env := binary.LittleEndian.Uint32(packet[headLen-8:]), binary.LittleEndian.Uint32(packet[headLen-4:])
	rest := string(packet[headLen:])
	if args > MaxWords || env > MaxWords || strings.Count(rest, "\x00") != int(args+env) || rest != "" &&
		rest[len(rest)-1] != 0 {
		return nil, errRequest
	}
	words := make([]string, 0, args+env)
	for rest != "" {
		w, after, _ := strings.Cut(rest, "\x00")
		words, rest = append(words, w), after
	}
	r.Args, r.Env = words[:args:args], words[args:]
	return r, nil
}
