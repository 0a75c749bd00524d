package providers

import (
	"context"
	"encoding/json"

	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/model"
)

// The body of POST /embeddings, and the answer.
type (
	embedRequest struct {
		Model          string   `json:"model"`
		Input          []string `json:"input"`
		EncodingFormat string   `json:"encoding_format"`
		Dimensions     int64    `json:"dimensions,omitempty"`
	}
	embedAnswer struct {
		Data  json.RawMessage `json:"data"`
		Usage openaiUsage     `json:"usage"`
	}
	embedVector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
)

// maxVectors bounds the answer to model_embed, in bytes: its numbers as text.
const maxVectors = 32*model.MaxFloats + 1<<20

func (p *Providers) openaiEmbed(ctx context.Context, q *question, inputs int) (model.Vectors, error) {
	body, err := p.ask(ctx, q)
	if err != nil {
		return model.Vectors{}, err
	}
	defer func() { _ = body.Close() }()
	var res embedAnswer
	if err = strictjson.Decode(body, maxVectors, &res, ofProvider|strictjson.Vectors); err != nil {
		return model.Vectors{}, err
	}
	v := model.Vectors{Vectors: make([][]float32, inputs), Metered: model.Unmetered()}
	v.Metered.In = count(res.Usage.Prompt)
	var list []embedVector // what was read is paid for, whatever is in it
	if strictjson.Unmarshal(res.Data, &list, ofProvider|strictjson.Vectors) != nil || len(list) != inputs {
		return v, brokenVectors(v)
	}
	floats := 0
	for _, e := range list {
		if e.Index < 0 || e.Index >= inputs || v.Vectors[e.Index] != nil || len(e.Embedding) == 0 ||
			len(e.Embedding) != len(list[0].Embedding) {
			return v, brokenVectors(v)
		}
		if floats += len(e.Embedding); floats > model.MaxFloats {
			return v, &model.Failure{Kind: model.TooLarge, Charge: model.ChargeMeasured, Metered: v.Metered}
		}
		v.Vectors[e.Index] = e.Embedding
	}
	return v, nil
}

func brokenVectors(v model.Vectors) error {
	return &model.Failure{
		Kind: model.Broken, Charge: model.ChargeMeasured, Metered: v.Metered,
		Detail: "vectors that do not go with the inputs",
	}
}
