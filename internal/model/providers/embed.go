package providers

import (
	"context"
	"encoding/json"
	"errors"

	"runloop.dev/rlp/internal/model"
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
		Data []struct {
			Index     int
			Embedding []float32
		}
		Usage openaiUsage
	}
)

func (p *Providers) openaiEmbed(ctx context.Context, q *question, inputs int) (model.Vectors, error) {
	body, err := p.ask(ctx, q)
	if err != nil {
		return model.Vectors{}, err
	}
	defer func() { _ = body.Close() }()
	var res embedAnswer
	var mistyped *json.UnmarshalTypeError // a number that is too large, too: all else was read
	if err = json.NewDecoder(body).Decode(&res); err != nil && !errors.As(err, &mistyped) {
		return model.Vectors{}, err
	}
	v := model.Vectors{Vectors: make([][]float32, inputs), Metered: model.Unmetered()}
	v.Metered.In = count(res.Usage.Prompt)
	if mistyped != nil || len(res.Data) != inputs {
		return v, brokenVectors(v)
	}
	floats := 0
	for _, e := range res.Data {
		if e.Index < 0 || e.Index >= inputs || v.Vectors[e.Index] != nil || len(e.Embedding) == 0 || len(e.Embedding) != len(res.Data[0].Embedding) {
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
	return &model.Failure{Kind: model.Broken, Charge: model.ChargeMeasured, Metered: v.Metered, Detail: "vectors that do not go with the inputs"}
}
