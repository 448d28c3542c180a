package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// namespace is that of the elements of a configuration.
const namespace = "urn:vxswitch:config"

// A node is an element of XML.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []node     `xml:",any"`
}

// xmlns is the attribute with the namespace of an element and those in it.
func xmlns(space string) xml.Attr { return xml.Attr{Name: xml.Name{Local: "xmlns"}, Value: space} }

func (n *node) name() string { return n.XMLName.Local }

func (n *node) child(name string) *node {
	for i := range n.Nodes {
		if n.Nodes[i].name() == name {
			return &n.Nodes[i]
		}
	}
	return nil
}

func (n *node) text() string {
	if n == nil {
		return ""
	}
	return strings.TrimSpace(n.Text)
}

// A schema says what a value of the configuration may be: see vxswitchd -schema.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       string             `json:"type"`
	Properties map[string]*schema `json:"properties"`
	More       json.RawMessage    `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	AnyOf      []*schema          `json:"anyOf"`
	Defs       map[string]*schema `json:"$defs"`

	values *schema // of More: the object is a map of names
}

func readSchema(text []byte) (*schema, error) {
	root := new(schema)
	if err := json.Unmarshal(text, root); err != nil {
		return nil, err
	}
	if root.Properties["segments"] == nil {
		return nil, fmt.Errorf("no schema of vxswitchd: it has no segments")
	}
	return root, root.link(root)
}

// link has references point to what they name.
func (s *schema) link(root *schema) error {
	for _, at := range []map[string]*schema{s.Properties, s.Defs, {"": s.Items}} {
		for name, x := range at {
			if x == nil {
				continue
			}
			if x.Ref != "" {
				to := root.Defs[strings.TrimPrefix(x.Ref, "#/$defs/")]
				if to == nil {
					return fmt.Errorf("no schema: %s is missing", x.Ref)
				}
				if name != "" {
					at[name] = to
				} else {
					s.Items = to
				}
			} else if err := x.link(root); err != nil {
				return err
			}
		}
	}
	if len(s.More) > 0 && s.More[0] == '{' {
		s.values = new(schema)
		return json.Unmarshal(s.More, s.values)
	}
	return nil
}

// key returns the property that tells the elements of a list apart, "" for a list where order does.
func (s *schema) key() string {
	for _, k := range []string{"name", "vni", "port", "tunnel", "prefix", "ip", "mac", "address", "addr"} {
		if s.Properties[k] != nil {
			return k
		}
	}
	return ""
}

// value returns what an element says, as of JSON.
func (s *schema) value(n *node) (any, error) {
	text := n.text()
	switch {
	case s.values != nil:
		return nil, unfit("operation-not-supported", n, "is an entry with a name and a value")
	case s.Type == "object":
		m := map[string]any{}
		return m, s.merge(m, n.Nodes, "create")
	case s.Type == "boolean":
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, unfit("invalid-value", n, "must be true or false")
		}
		return b, nil
	case s.Type == "integer", len(s.AnyOf) > 0 && text != "" && strings.Trim(text, "0123456789") == "":
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, unfit("invalid-value", n, "must be a number")
		}
		return json.Number(strconv.FormatInt(i, 10)), nil // which JSON has in one way only
	case s.Type != "" && s.Type != "string" && s.Type != "number":
		return nil, unfit("invalid-value", n, "is a "+s.Type)
	}
	return text, nil
}

// xml returns a value of the configuration, or a table of the node, as elements. Of a list each is one.
func (s *schema) xml(name string, v any) []node {
	n := node{XMLName: xml.Name{Local: name}}
	switch v := v.(type) {
	case []any:
		var items *schema
		if s != nil {
			items = s.Items
		}
		var list []node
		for _, x := range v {
			list = append(list, items.xml(name, x)...)
		}
		return list
	case map[string]any:
		if s != nil && s.values != nil {
			var list []node
			for _, k := range slices.Sorted(maps.Keys(v)) {
				e := node{XMLName: n.XMLName, Nodes: append((*schema)(nil).xml("name", k), s.values.xml("value", v[k])...)}
				list = append(list, e)
			}
			return list
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			var of *schema
			if s != nil {
				of = s.Properties[k]
			}
			n.Nodes = append(n.Nodes, of.xml(k, v[k])...)
		}
	case nil:
		return nil
	default:
		n.Text = fmt.Sprint(v)
	}
	return []node{n}
}

// pick returns what a subtree filter lets through (RFC 6241, section 6).
func pick(data, filter []node) (kept []node) {
	for _, d := range data {
		for _, f := range filter {
			if f.name() != d.name() {
				continue
			}
			fits, deeper := true, []node{}
			for _, c := range f.Nodes {
				if want := c.text(); want != "" && len(c.Nodes) == 0 {
					fits = fits && slices.ContainsFunc(d.Nodes, func(x node) bool { return x.name() == c.name() && x.text() == want })
				}
				deeper = append(deeper, node{XMLName: c.XMLName, Nodes: c.Nodes})
			}
			if !fits {
				continue
			}
			if slices.ContainsFunc(f.Nodes, func(c node) bool { return c.text() == "" }) { // else all of it
				d.Nodes = pick(d.Nodes, deeper)
			}
			kept = append(kept, d)
			break
		}
	}
	return kept
}
