package rows

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/foldline/foldline/internal/envelope"
)

// compiler builds the readers of one table's builders and holds the buffers they share.
type compiler struct {
	limits Limits
	names  []byte // an unquoted member name
	chars  []byte // an unquoted string
	bytes  []byte // decoded base64
	plain  bool   // the token at hand is known to have no escapes
	last   int    // bytes of the string or binary value appended last
	depth  int    // of the nested column whose reader is being built
	spent  *int   // bytes that the rows of the message at hand take whatever their values, over all tables
}

// unquote is the text of a JSON string, valid until the next call.
func (c *compiler) unquote(raw jsontext.Value) ([]byte, *fault) {
	if c.plain {
		return raw[1 : len(raw)-1], nil
	}
	if text, verbatim := verbatim(raw); verbatim {
		return text, nil
	}
	text, err := jsontext.AppendUnquote(c.chars[:0], raw)
	if err != nil {
		return nil, syntaxFault(err)
	}
	c.chars = text
	return text, nil
}

// name is unquote with a buffer of its own, valid until the next name.
func (c *compiler) name(raw jsontext.Value) ([]byte, *fault) {
	if text, verbatim := verbatim(raw); verbatim {
		return text, nil
	}
	text, err := jsontext.AppendUnquote(c.names[:0], raw)
	if err != nil {
		return nil, syntaxFault(err)
	}
	c.names = text
	return text, nil
}

func verbatim(raw jsontext.Value) ([]byte, bool) {
	return raw[1 : len(raw)-1], bytes.IndexByte(raw, '\\') < 0
}

func (c *compiler) bounded(size int) *fault {
	c.last = size
	if size > c.limits.StringBytes {
		return refuse(envelope.CodeTooLarge, fmt.Sprintf("a value of %d bytes, the limit is %d", size, c.limits.StringBytes))
	}
	return nil
}

// newReader is the reader of a field; nullable is the table's word, which the record's schema may relax.
func (c *compiler) newReader(f arrow.Field, nullable bool, b array.Builder) reader {
	if _, nested := f.Type.(arrow.NestedType); nested {
		if c.depth++; c.depth > c.limits.Nesting {
			c.depth--
			return &scalar{builder: b, nullable: nullable, append: tooDeep(c.limits.Nesting)}
		}
		defer func() { c.depth-- }()
	}
	switch b := b.(type) {
	case *array.StructBuilder:
		return c.newObject(f.Type.(*arrow.StructType), nullable, b)
	case *array.FixedSizeListBuilder:
		t := f.Type.(*arrow.FixedSizeListType)
		return c.newList(t.ElemField(), nullable, b, int(t.Len()))
	case *array.ListBuilder:
		return c.newList(f.Type.(*arrow.ListType).ElemField(), nullable, b, -1)
	case *array.LargeListBuilder:
		return c.newList(f.Type.(*arrow.LargeListType).ElemField(), nullable, b, -1)
	}
	add := c.newScalar(f.Type, b)
	if add == nil {
		add = noJSONForm(f.Type)
	}
	return &scalar{builder: b, nullable: nullable, append: add}
}

// tooDeep refuses the values of a column that is nested deeper than the limit; nulls are not deep.
func tooDeep(limit int) func(jsontext.Value) *fault {
	return func(jsontext.Value) *fault {
		return refuse(envelope.CodeTooDeep, fmt.Sprintf("nested deeper than %d", limit))
	}
}

func noJSONForm(t arrow.DataType) func(jsontext.Value) *fault {
	return func(jsontext.Value) *fault {
		return refuse(envelope.CodeBadValue, "a column of type "+t.String()+" has no JSON form; send an Arrow stream")
	}
}

// list reads arrays; length is the exact count of elements, -1 for any.
type list struct {
	builder  array.ListLikeBuilder
	element  reader
	nullable bool
	length   int
}

func (c *compiler) newList(e arrow.Field, nullable bool, b array.ListLikeBuilder, length int) reader {
	return &list{builder: b, element: c.newReader(e, e.Nullable, b.ValueBuilder()), nullable: nullable, length: length}
}

// null of a list of fixed length has as many elements as any other; Arrow's builder appends them.
func (l *list) null() { l.builder.AppendNull() }

func (l *list) fill(n int) {
	for l.builder.Len() < n {
		l.null()
	}
	elements := l.builder.ValueBuilder().Len()
	if l.length >= 0 {
		elements = n * l.length
	}
	l.element.fill(elements)
}

func (l *list) take(raw jsontext.Value) *fault { return takeNull(raw, l.nullable, l, "an array") }

func (l *list) read(dec *jsontext.Decoder) *fault {
	switch dec.PeekKind() {
	case '[':
	default:
		return readToken(dec, l)
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntaxFault(err)
	}
	l.builder.Append(true)
	n := 0
	for ; dec.PeekKind() != ']'; n++ {
		if l.length >= 0 && n == l.length {
			return refuse(envelope.CodeBadValue, fmt.Sprintf("more than %d elements", l.length))
		}
		if f := l.element.read(dec); f != nil {
			return f.at(n)
		}
	}
	if l.length >= 0 && n != l.length {
		return refuse(envelope.CodeBadValue, fmt.Sprintf("%d elements, the column takes %d", n, l.length))
	}
	_, err := dec.ReadToken()
	if err != nil {
		return syntaxFault(err)
	}
	return nil
}

// object reads the objects of a struct column. Members that name no field are refused: a struct has no option for them.
type object struct {
	c        *compiler
	builder  *array.StructBuilder
	fields   []arrow.Field
	readers  []reader
	index    map[string]int
	nullable bool
}

func (c *compiler) newObject(t *arrow.StructType, nullable bool, b *array.StructBuilder) reader {
	o := &object{c: c, builder: b, fields: t.Fields(), index: make(map[string]int, t.NumFields()), nullable: nullable}
	for i, f := range o.fields {
		o.index[f.Name] = i
		o.readers = append(o.readers, c.newReader(f, f.Nullable, b.FieldBuilder(i)))
	}
	return o
}

// null leaves a null in every child, so that the children stay as long as the struct; Arrow's builder appends them.
func (o *object) null() { o.builder.AppendNull() }

func (o *object) fill(n int) {
	for o.builder.Len() < n {
		o.null()
	}
	for _, r := range o.readers {
		r.fill(n)
	}
}

func (o *object) take(raw jsontext.Value) *fault { return takeNull(raw, o.nullable, o, "an object") }

func (o *object) read(dec *jsontext.Decoder) *fault {
	switch dec.PeekKind() {
	case '{':
	default:
		return readToken(dec, o)
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntaxFault(err)
	}
	o.builder.Append(true)
	seen := make([]bool, len(o.fields))
	for dec.PeekKind() != '}' {
		if f := o.member(dec, seen); f != nil {
			return f
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntaxFault(err)
	}
	for i, present := range seen {
		if present {
			continue
		}
		if !o.fields[i].Nullable {
			return refuse(envelope.CodeNullInRequired, "missing, and the column takes no null").under(o.fields[i].Name)
		}
		o.readers[i].null()
	}
	return nil
}

func (o *object) member(dec *jsontext.Decoder, seen []bool) *fault {
	raw, err := dec.ReadValue()
	if err != nil {
		return syntaxFault(err)
	}
	name, f := o.c.name(raw)
	if f != nil {
		return f
	}
	i, known := o.index[string(name)]
	switch {
	case !known:
		return refuse(envelope.CodeUnknownField, "no such field").under(string(name))
	case seen[i]:
		return refuse(envelope.CodeDuplicateMember, "stands twice in the object").under(o.fields[i].Name)
	}
	seen[i] = true
	if f := o.readers[i].read(dec); f != nil {
		return f.under(o.fields[i].Name)
	}
	return nil
}

// readToken reads what a nested column takes no more than a null of.
func readToken(dec *jsontext.Decoder, r reader) *fault {
	raw, err := dec.ReadValue()
	if err != nil {
		return syntaxFault(err)
	}
	return r.take(raw)
}

// takeNull appends a null, or refuses any other value.
func takeNull(raw jsontext.Value, nullable bool, r reader, want string) *fault {
	if raw.Kind() != 'n' {
		return wrongKind(raw, want)
	}
	if !nullable {
		return refuse(envelope.CodeNullInRequired, "null in a column that takes none")
	}
	r.null()
	return nil
}
