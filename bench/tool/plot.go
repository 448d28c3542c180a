package tool

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// SVG is a picture with a white ground: notes one below the other, then what is drawn.
func SVG(width, height, font int, notes []string, drawn string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="%d">
<rect width="100%%" height="100%%" fill="#fff"/>
`, width, height, font)
	for i, n := range notes {
		fmt.Fprintf(&b, `<text x="10" y="%d">%s</text>`+"\n", 20+15*i, html.EscapeString(n))
	}
	return b.String() + drawn + "</svg>\n"
}

// An Axis maps values from Low to High to pixels between From and To: by their logarithms,
// or in proportion.
type Axis struct {
	Low, High, From, To float64
	Linear              bool
}

// At returns the pixel of a value.
func (a Axis) At(v float64) float64 {
	if a.Linear {
		return a.From + (a.To-a.From)*(v-a.Low)/(a.High-a.Low)
	}
	return a.From + (a.To-a.From)*math.Log(v/a.Low)/math.Log(a.High/a.Low)
}

// Line is a line through points, with more attributes if there are any.
func Line(points [][2]float64, colour, more string) string {
	var at []string
	for _, p := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p[0], p[1]))
	}
	return fmt.Sprintf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(at, " "), colour, more)
}

// Elements reads a picture: how many elements it has of each kind, and its text. One with a
// value that is no number is an error.
func Elements(svg string) (count map[string]int, text string, err error) {
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(svg, bad) {
			return nil, "", fmt.Errorf("%s in it", bad)
		}
	}
	count = map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count, text, nil
		}
		if err != nil {
			return nil, "", err
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			count[tok.Name.Local]++
		case xml.CharData:
			text += string(tok)
		}
	}
}
