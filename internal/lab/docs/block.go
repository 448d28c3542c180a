package docs

import (
	"fmt"
	"os"
	"strings"
)

// A Block is what is between two fences of a page.
type Block struct {
	Lang    string // the first word after the fence, "" for none
	Arg     string // the second: a host, or a file
	Heading string // of the second level, "" before the first
	Line    int    // of the fence, from 1
	Text    string // the lines, each with its end
}

// Blocks returns the blocks of a page, in order.
func Blocks(file string) (bs []Block, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var b *Block
	heading, n := "", 0
	for line := range strings.Lines(string(text)) {
		n++
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && b == nil:
			lang, arg, _ := strings.Cut(info, " ")
			b = &Block{Lang: lang, Arg: arg, Heading: heading, Line: n}
		case fence:
			bs, b = append(bs, *b), nil
		case b != nil:
			b.Text += line
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(line[3:])
		}
	}
	if b != nil {
		return nil, fmt.Errorf("%s:%d: the block has no end", file, b.Line)
	}
	return bs, nil
}
