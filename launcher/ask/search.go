package ask

// A Hit is a value of the knowledge base that suits a text.
type Hit struct {
	Key     string  `json:"key"`
	Score   float64 `json:"score"`
	Snippet string  `json:"snippet"`
	Label   string  `json:"label"`
}
