package main

import (
	"fmt"
	"slices"
)

// An rpcError is an error of RFC 6241, section 4.3.
type rpcError struct{ tag, path, text string }

func (e *rpcError) Error() string { return e.text }

func unfit(tag string, n *node, text string) error {
	return &rpcError{tag, n.name(), fmt.Sprintf("%s %q: %s", n.name(), n.text(), text)}
}

// merge changes an object by the operations of elements (RFC 6241, section 7.2), which are op by default.
func (s *schema) merge(into map[string]any, nodes []node, op string) error {
	for i := range nodes {
		n := &nodes[i]
		p, op := s.Properties[n.name()], op
		if p == nil {
			return &rpcError{"unknown-element", n.name(), fmt.Sprintf("%s: no such element", n.name())}
		}
		for _, a := range n.Attrs {
			if a.Name.Local == "operation" {
				op = a.Value
			}
		}
		var err error
		switch {
		case p.Items != nil && p.Items.Type == "object":
			err = p.mergeEntry(into, n, op)
		case p.Items != nil:
			err = p.mergeLeafList(into, n, op)
		case p.values != nil:
			err = p.mergeNamed(into, n, op)
		default:
			err = p.mergeOne(into, n, op)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether an operation removes what is there, or is done without. It is an error of those that have to find something,
// or must not.
func gone(n *node, op string, there bool) (bool, error) {
	switch op {
	case "create":
		if there {
			return false, unfit("data-exists", n, "exists")
		}
		return false, nil
	case "delete":
		if !there {
			return false, unfit("data-missing", n, "does not exist")
		}
		return true, nil
	case "none":
		if !there {
			return false, unfit("data-missing", n, "does not exist")
		}
		return false, nil
	case "merge", "replace":
		return false, nil
	case "remove":
		return true, nil
	}
	return false, unfit("bad-attribute", n, "operation "+op+" must be merge, replace, create, delete or remove")
}

// mergeOne changes a leaf or a container.
func (s *schema) mergeOne(into map[string]any, n *node, op string) error {
	k := n.name()
	old, there := into[k]
	if is, err := gone(n, op, there); is || err != nil {
		delete(into, k)
		return err
	}
	if m, ok := old.(map[string]any); ok && op != "replace" {
		return s.merge(m, n.Nodes, op)
	}
	if op == "none" {
		return nil
	}
	v, err := s.value(n)
	into[k] = v
	return err
}

// mergeEntry changes an entry of a list. One without a key is a new one.
func (s *schema) mergeEntry(into map[string]any, n *node, op string) error {
	list, _ := into[n.name()].([]any)
	key := s.Items.key()
	name := n.child(key)
	if key != "" && name == nil {
		return &rpcError{"missing-element", n.name(), fmt.Sprintf("%s: %s is missing", n.name(), key)}
	}
	at := -1
	if key != "" {
		want, err := s.Items.Properties[key].value(name)
		if err != nil {
			return err
		}
		at = slices.IndexFunc(list, func(x any) bool { return fmt.Sprint(x.(map[string]any)[key]) == fmt.Sprint(want) })
	}
	is, err := gone(n, op, at >= 0)
	switch {
	case err != nil:
		return err
	case is && at >= 0:
		into[n.name()] = slices.Delete(list, at, at+1)
		return nil
	case is:
		return nil
	case at >= 0 && op != "replace":
		return s.Items.merge(list[at].(map[string]any), n.Nodes, op)
	}
	v, err := s.Items.value(n)
	if at >= 0 {
		list[at] = v
	} else {
		into[n.name()] = append(list, v)
	}
	return err
}

// mergeLeafList changes a list of values.
func (s *schema) mergeLeafList(into map[string]any, n *node, op string) error {
	list, _ := into[n.name()].([]any)
	v, err := s.Items.value(n)
	if err != nil {
		return err
	}
	at := slices.Index(list, v)
	is, err := gone(n, op, at >= 0)
	switch {
	case err != nil:
		return err
	case is && at >= 0:
		into[n.name()] = slices.Delete(list, at, at+1)
	case !is && at < 0:
		into[n.name()] = append(list, v)
	}
	return nil
}

// mergeNamed changes an entry of a map: a list whose entries have a name and values.
func (s *schema) mergeNamed(into map[string]any, n *node, op string) error {
	m, _ := into[n.name()].(map[string]any)
	if m == nil {
		m = map[string]any{}
		into[n.name()] = m
	}
	name := n.child("name").text()
	_, there := m[name]
	if is, err := gone(n, op, there); is || err != nil {
		delete(m, name)
		return err
	}
	entry := map[string]any{}
	if there && op != "replace" {
		entry["name"], entry["value"] = name, m[name]
	} else {
		op = "create"
	}
	of := &schema{Type: "object", Properties: map[string]*schema{"value": s.values, "name": {Type: "string"}}}
	err := of.merge(entry, n.Nodes, op)
	m[name] = entry["value"]
	return err
}
