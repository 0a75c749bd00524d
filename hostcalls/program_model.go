package hostcalls

import (
	"context"
	"encoding/json"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/record/audit"
)

// Complete asks a model as model_complete does by the same text. emit, unless it is
// nil, is given the answer in parts and without the values of secrets.
func (p *ProgramHost) Complete(ctx context.Context, text string, emit func(model.Piece)) (*model.Answer, error) {
	q := asking[*model.CompleteRequest]{completeName, completeCall, text}
	return askModel(p, q, func(r *model.CompleteRequest) (*model.Answer, error) {
		if emit == nil {
			return p.h.cfg.Model.Complete(ctx, r)
		}
		s := model.Parts{To: emit, Stream: p.stream}
		r.Emit = s.Take
		got, err := p.h.cfg.Model.Complete(ctx, r)
		s.End(got)
		return got, err
	}, without)
}

// stream takes values of secrets out of one text, in pieces.
func (p *ProgramHost) stream() func(piece []byte, end bool) []byte {
	if p.h.cfg.Secrets == nil {
		return func(piece []byte, _ bool) []byte { return piece }
	}
	clean := p.h.cfg.Secrets.Stream(p.h.replaced)
	return func(piece []byte, end bool) []byte {
		p.mu.Lock()
		defer p.mu.Unlock()
		return clean(piece, end)
	}
}

// Embed asks a model as model_embed does by the same text.
func (p *ProgramHost) Embed(ctx context.Context, text string) (*model.Embeddings, error) {
	q := asking[*model.EmbedRequest]{embedName, embedCall, text}
	return askModel(p, q, func(r *model.EmbedRequest) (*model.Embeddings, error) {
		return p.h.cfg.Model.Embed(ctx, r)
	}, func(_ *Host, got *model.Embeddings) *model.Embeddings { return got })
}

// asking is a call to a model, and the text of its request.
type asking[R model.Request] struct {
	name string
	call gated[modelReq[R]]
	text string
}

func askModel[R model.Request, A any](p *ProgramHost, q asking[R], ask func(R) (A, error), clean func(*Host, A) A,
) (got A, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.h
	h.calling, q.call.family = q.name, caps.Model
	op, err := h.cfg.Gate.Op(q.name)
	if err != nil {
		return got, p.refusal(err)
	}
	r, _, err := q.call.admit(context.Background(), h, op, []string{h.scrubText(q.text)})
	if err != nil {
		return got, p.refusal(err)
	}
	start := h.cfg.Now()
	p.mu.Unlock()
	got, err = ask(r.ask)
	p.mu.Lock()
	h.calling, h.remark = q.name, ""
	e := &audit.Event{}
	if err == nil {
		var out []byte
		got = clean(h, got)
		if out, err = json.Marshal(got); err == nil {
			e.Bytes, e.ResultHash = int64(len(out)), hexSum(h.cfg.Gate.ResultHash(out))
		}
	} else {
		err = h.modelError(r.ask.Name(), err)
	}
	if recorded := h.concluded(op, start, e, err); recorded != nil {
		err = recorded
	}
	if err != nil {
		return got, p.refusal(err)
	}
	return got, nil
}
