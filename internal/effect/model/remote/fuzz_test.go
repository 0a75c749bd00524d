package remote

import (
	"bytes"
	"context"
	"io"
	"reflect"
	"testing"

	"runloop.dev/rlp/internal/effect/model"
)

func seeds(f *testing.F) {
	for _, v := range []any{
		ask{
			ID: 1, Op: opComplete, Target: &target{Kind: "openai", Model: "last", Key: "sk", TimeoutMS: 1},
			Complete: &model.CompleteRequest{Messages: []model.Message{{Role: "user", Content: "x"}}},
		},
		ask{
			ID: 2, Op: opEmbed, Target: &target{Kind: "openai", Model: "few", TimeoutMS: 1},
			Embed: &model.EmbedRequest{Input: []string{"a", "b"}},
		},
		ask{ID: 1, Op: opCancel},
		reply{ID: 1, Completion: &model.Completion{Text: "x"}},
		reply{ID: 1, Vectors: &packed{Size: 1, Data: []byte{0, 0, 0, 0}}},
		reply{ID: 1, Failure: &model.Failure{Kind: model.Broken}},
	} {
		frame, err := encode(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
		f.Add(append(frame, frame...))
		f.Add(frame[:len(frame)-1])
	}
	f.Add([]byte("\x00\x00\x00\x02{}"))
}

// quiet is a backend that answers at once.
type quiet struct{}

func (quiet) Complete(context.Context, model.Target, *model.CompleteRequest) (model.Completion, error) {
	return model.Completion{}, nil
}

func (quiet) Embed(_ context.Context, _ model.Target, r *model.EmbedRequest) (model.Vectors, error) {
	return model.Vectors{Vectors: make([][]float32, len(r.Input))}, nil
}

// Whatever comes in: the child ends, and every reply is a frame.
func FuzzServe(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		_ = Serve(t.Context(), bytes.NewReader(in), &out, quiet{})
		for {
			var r reply
			if err := decode(&out, &r); err == io.EOF {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whatever a child writes: the parent takes it for an answer, or for its end.
func FuzzReply(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		c := newConn(io.Discard, bytes.NewReader(in), func() error { return nil })
		wait := &waiter{reply: make(chan reply, 1), more: make(chan struct{}, 1)}
		w := wait.reply
		c.mu.Lock()
		c.waiting[1] = wait
		c.mu.Unlock()
		<-c.dead
		select {
		case r := <-w:
			if r.Vectors == nil {
				return
			}
			v, err := r.Vectors.unpack()
			if err != nil {
				return
			}
			for _, vector := range v.Vectors {
				if len(vector) != r.Vectors.Size {
					t.Errorf("%d numbers, not %d", len(vector), r.Vectors.Size)
				}
			}
		default:
		}
	})
}

// What is read is what was written.
func FuzzFrame(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, again ask
		if decode(bytes.NewReader(in), &a) != nil {
			return
		}
		frame, err := encode(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := decode(bytes.NewReader(frame), &again); err != nil {
			t.Fatal(err)
		}
		once, err := encode(again)
		if err != nil || !bytes.Equal(once, frame) {
			t.Errorf("%s becomes %s", frame, once)
		}
		if a.Target != nil && !reflect.DeepEqual(a.Target, again.Target) {
			t.Errorf("%+v becomes %+v", a.Target, again.Target)
		}
	})
}
