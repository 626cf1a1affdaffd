package plan

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gpupool/gpupool-operator/api/v1alpha1"
	"github.com/gpupool/gpupool-operator/internal/selector"
)

// attributeTest is the expression of one attribute requirement. The error is for values that the schema refuses, so
// that a requirement which did not pass through the API server is refused too.
func (s selection) attributeTest(r v1alpha1.AttributeRequirement) (string, error) {
	name := selector.ParseName(r.Name, s.driver)
	switch r.Operator {
	case v1alpha1.AttributeExists:
		return selector.HasAttribute(name), nil
	case v1alpha1.AttributeDoesNotExist:
		return selector.Not(selector.HasAttribute(name)), nil
	case v1alpha1.AttributeIn, v1alpha1.AttributeNotIn:
		test, err := attributeIn(name, r.Type, r.Values)
		if err == nil && r.Operator == v1alpha1.AttributeNotIn {
			test = selector.Not(test)
		}
		return test, err
	case v1alpha1.AttributeAtLeast, v1alpha1.AttributeAtMost:
		return attributeBound(name, r)
	}
	return "", fmt.Errorf("operator %q is unknown", r.Operator)
}

// attributeReading is what a requirement reads of a device. What a device has is wanted or not; only bounds of versions
// have a nearest value.
func (s selection) attributeReading(r v1alpha1.AttributeRequirement) reading {
	name := selector.ParseName(r.Name, s.driver)
	bounded := r.Operator == v1alpha1.AttributeAtLeast || r.Operator == v1alpha1.AttributeAtMost
	if r.Type == v1alpha1.AttributeVersion && bounded && len(r.Values) == 1 {
		if bound, err := selector.ParseVersion(r.Values[0]); err == nil {
			read := versionReading{name: name}
			if r.Operator == v1alpha1.AttributeAtLeast {
				read.min = &bound
			} else {
				read.max = &bound
			}
			return read
		}
	}
	return stringReading{name: name, wanted: r.Values}
}

func attributeIn(name selector.Name, attributeType v1alpha1.AttributeType, values []string) (string, error) {
	if len(values) == 0 {
		return "", errors.New("values must not be empty")
	}
	switch attributeType {
	case v1alpha1.AttributeString, "":
		return selector.StringIn(name, values...), nil
	case v1alpha1.AttributeInt:
		ints, err := parseAll(values, parseInt)
		return selector.IntIn(name, ints...), err
	case v1alpha1.AttributeBool:
		bools, err := parseAll(values, strconv.ParseBool)
		return selector.BoolIn(name, bools...), err
	case v1alpha1.AttributeVersion:
		versions, err := parseAll(values, selector.ParseVersion)
		return selector.VersionIn(name, versions...), err
	}
	return "", fmt.Errorf("type %q is unknown", attributeType)
}

func attributeBound(name selector.Name, r v1alpha1.AttributeRequirement) (string, error) {
	if len(r.Values) != 1 {
		return "", fmt.Errorf("operator %s must have exactly one value", r.Operator)
	}
	atLeast := r.Operator == v1alpha1.AttributeAtLeast
	switch r.Type {
	case v1alpha1.AttributeInt:
		bound, err := parseInt(r.Values[0])
		if atLeast {
			return selector.IntBetween(name, &bound, nil), err
		}
		return selector.IntBetween(name, nil, &bound), err
	case v1alpha1.AttributeVersion:
		bound, err := selector.ParseVersion(r.Values[0])
		if err != nil {
			return "", err
		}
		if atLeast {
			return selector.VersionBetween(name, &bound, nil), nil
		}
		return selector.VersionBetween(name, nil, &bound), nil
	}
	return "", fmt.Errorf("operator %s must have type Int or Version", r.Operator)
}

func parseInt(text string) (int64, error) {
	return strconv.ParseInt(text, 10, 64)
}

func parseAll[T any](values []string, parse func(string) (T, error)) ([]T, error) {
	parsed := make([]T, 0, len(values))
	for _, v := range values {
		p, err := parse(v)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}
