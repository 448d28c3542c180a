package arp

// pageRows is how many rows a page has.
const pageRows = 32

// rows is a list in pages. It grows without moving its rows: to copy those of a large table takes many milliseconds, in which the
// scheduler of Go can stop no goroutine.
type rows struct {
	pages []*[pageRows]row
	n     int32
}

func (r *rows) at(i int32) *row { return &r.pages[i/pageRows][i%pageRows] }

// add appends a row and returns its number.
func (r *rows) add(x row) int32 {
	if int(r.n) == len(r.pages)*pageRows {
		r.pages = append(r.pages, new([pageRows]row))
	}
	r.n++
	*r.at(r.n - 1) = x
	return r.n - 1
}

// drop removes the last row. A page stays until the one before it is half empty.
func (r *rows) drop() {
	r.n--
	*r.at(r.n) = row{}
	if last := len(r.pages) - 1; last > 0 && int(r.n) <= last*pageRows-pageRows/2 {
		r.pages[last] = nil
		r.pages = r.pages[:last]
	}
}
