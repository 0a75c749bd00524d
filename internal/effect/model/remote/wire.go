package remote

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

// maxFrame bounds one frame, in bytes: the largest answer in numbers, packed.
const maxFrame = 32 << 20

// The operations of an ask.
const (
	opComplete = "complete"
	opEmbed    = "embed"
	opCancel   = "cancel"
)

// An ask goes to the child. Answers come back by its id, in any order.
type ask struct {
	ID       uint64                 `json:"id"`
	Op       string                 `json:"op"`
	Target   *target                `json:"target,omitempty"`
	Complete *model.CompleteRequest `json:"complete,omitempty"`
	Embed    *model.EmbedRequest    `json:"embed,omitempty"`
	// Parts asks for the answer as it comes, before the reply.
	Parts bool `json:"parts,omitempty"`
}

// A target is a [model.Target] on the way: the one place where a key is text.
type target struct {
	Kind      string `json:"kind"`
	BaseURL   string `json:"base_url,omitempty"`
	Model     string `json:"model"`
	Key       string `json:"key,omitempty"`
	TimeoutMS int64  `json:"timeout_ms"`
}

func (t *target) open() model.Target {
	return model.Target{
		Kind: t.Kind, BaseURL: t.BaseURL, Model: t.Model, Key: model.NewKey(t.Key),
		Timeout: time.Duration(t.TimeoutMS) * time.Millisecond,
	}
}

// A reply is the child's answer to the ask with its id: one of the three. Replies
// with a piece come before it, in their order.
type reply struct {
	Piece      *model.Piece      `json:"piece,omitempty"`
	ID         uint64            `json:"id"`
	Completion *model.Completion `json:"completion,omitempty"`
	Vectors    *packed           `json:"vectors,omitempty"`
	Failure    *model.Failure    `json:"failure,omitempty"`
}

// packed are vectors of one length, as the bytes of their numbers.
type packed struct {
	Size    int           `json:"size"`
	Data    []byte        `json:"data"`
	Metered model.Metered `json:"metered"`
}

func pack(v model.Vectors) (*packed, error) {
	p := &packed{Metered: v.Metered}
	if len(v.Vectors) > 0 {
		p.Size = len(v.Vectors[0])
	}
	if p.Size*len(v.Vectors) > model.MaxFloats {
		return nil, &model.Failure{Kind: model.TooLarge, Charge: model.ChargeMeasured, Metered: v.Metered}
	}
	for _, vector := range v.Vectors {
		if len(vector) != p.Size {
			return nil, &model.Failure{Kind: model.Broken, Charge: model.ChargeMeasured, Metered: v.Metered}
		}
		for _, x := range vector {
			p.Data = binary.LittleEndian.AppendUint32(p.Data, math.Float32bits(x))
		}
	}
	return p, nil
}

var errVectors = errors.New("vectors of another size than they say")

func (p *packed) unpack() (model.Vectors, error) {
	v := model.Vectors{Metered: p.Metered}
	if p.Size <= 0 || p.Size > model.MaxFloats || len(p.Data)%(4*p.Size) != 0 {
		return v, errVectors
	}
	for rest := p.Data; len(rest) > 0; rest = rest[4*p.Size:] {
		vector := make([]float32, p.Size)
		for i := range vector {
			vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
		}
		v.Vectors = append(v.Vectors, vector)
	}
	return v, nil
}

var errFrame = errors.New("a frame longer than frames are")

func encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding a frame: %w", err)
	}
	if len(body) > maxFrame {
		return nil, errFrame
	}
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	return append(frame, body...), nil
}

// decode reads one frame into v: exactly one JSON object, of fields that v has.
// The end of r between two frames is io.EOF. What a frame claims to be long is
// allocated as it comes.
func decode(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return fmt.Errorf("reading a frame: %w", err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > maxFrame {
		return errFrame
	}
	var body bytes.Buffer
	if got, err := io.Copy(&body, io.LimitReader(r, n)); err != nil || got != n {
		return fmt.Errorf("reading a frame: %w", errors.Join(io.ErrUnexpectedEOF, err))
	}
	if err := strictjson.Unmarshal(body.Bytes(), v, strictjson.Enclosing); err != nil {
		return fmt.Errorf("decoding a frame: %w", err)
	}
	return nil
}
