package lane

// A keeper keeps the beginning of what is written to it, and takes all.
type keeper struct {
	max int
	Output
}

func (w *keeper) Write(p []byte) (int, error) {
	keep := min(len(p), w.max-len(w.Data))
	w.Data = append(w.Data, p[:keep]...)
	w.Cut = w.Cut || keep < len(p)
	return len(p), nil
}
