package lane

// A Keeper keeps the beginning of what is written to it, and takes all.
type Keeper struct {
	Max int // bytes
	Output
}

// Write implements [io.Writer].
func (w *Keeper) Write(p []byte) (int, error) {
	keep := min(len(p), w.Max-len(w.Data))
	w.Data = append(w.Data, p[:keep]...)
	w.Cut = w.Cut || keep < len(p)
	return len(p), nil
}
