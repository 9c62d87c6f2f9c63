package rules

import (
	"fmt"

	telemetry "istio.io/api/telemetry/v1alpha1"
)

// Codes about telemetry.
const (
	manyTracers   = "COX2701"
	badTag        = "COX2702"
	badExpression = "COX2703"
)

func (c *checker) telemetry(at path, t *telemetry.Telemetry) {
	c.selection(at, t.Selector, t.TargetRef, t.TargetRefs)
	if len(t.Tracing) > 1 {
		c.warn(manyTracers, at.field("tracing"), "multiple tracing is not currently supported: the first counts")
	}
	for i, each := range t.Tracing {
		c.tracing(at.field("tracing").index(i), each)
	}
	for i, each := range t.Metrics {
		c.metrics(at.field("metrics").index(i), each)
	}
	for i, each := range t.AccessLogging {
		here := at.field("accessLogging").index(i)
		c.providers(here.field("providers"), each.GetProviders())
		if f := each.GetFilter(); f != nil {
			c.expression(here.field("filter").field("expression"), f.Expression)
		}
	}
}

func (c *checker) providers(at path, list []*telemetry.ProviderRef) {
	for i, p := range list {
		if p.GetName() == "" {
			c.fail(emptyValue, at.index(i).field("name"), "providers.name must not be empty")
		}
	}
}

func (c *checker) tracing(at path, t *telemetry.Tracing) {
	c.providers(at.field("providers"), t.GetProviders())
	if len(t.GetProviders()) > 1 {
		c.warn(manyTracers, at.field("providers"), "multiple providers is not currently supported: the first counts")
	}
	c.percent(at.field("randomSamplingPercentage"), t.GetRandomSamplingPercentage().GetValue())
	for _, name := range sorted(t.GetCustomTags()) {
		here := at.field("customTags").key(name)
		if name == "" {
			c.fail(badTag, here, "a tag's name must not be empty")
		}
		c.customTag(here, name, t.CustomTags[name])
	}
}

func (c *checker) customTag(at path, name string, tag *telemetry.Tracing_CustomTag) {
	missing := ""
	switch t := tag.GetType().(type) {
	case nil:
		c.fail(badTag, at, "tag '%s' may not have a nil value", name).hint("give it one of literal, environment, header and formatter")
	case *telemetry.Tracing_CustomTag_Literal:
		missing = when(t.Literal.GetValue() == "", "literal.value")
	case *telemetry.Tracing_CustomTag_Environment:
		missing = when(t.Environment.GetName() == "", "environment.name")
	case *telemetry.Tracing_CustomTag_Header:
		missing = when(t.Header.GetName() == "", "header.name")
	case *telemetry.Tracing_CustomTag_Formatter:
		missing = when(t.Formatter.GetValue() == "", "formatter.value")
	}
	if missing != "" {
		c.fail(badTag, at, "tag '%s': %s must not be empty", name, missing)
	}
}

// when returns a text if something is so.
func when(so bool, text string) string {
	if so {
		return text
	}
	return ""
}

func (c *checker) metrics(at path, m *telemetry.Metrics) {
	c.providers(at.field("providers"), m.GetProviders())
	c.duration(at.field("reportingInterval"), m.GetReportingInterval(), false)
	for i, o := range m.GetOverrides() {
		here := at.field("overrides").index(i)
		if custom, ok := o.GetMatch().GetMetricMatch().(*telemetry.MetricSelector_CustomMetric); ok && custom.CustomMetric == "" {
			c.fail(emptyValue, here.field("match").field("customMetric"), "customMetric must not be empty")
		}
		for _, name := range sorted(o.GetTagOverrides()) {
			c.tagOverride(here.field("tagOverrides").key(name), name, o.TagOverrides[name])
		}
	}
}

func (c *checker) tagOverride(at path, name string, o *telemetry.MetricsOverrides_TagOverride) {
	subject := fmt.Sprintf("tag '%s': value", name)
	switch {
	case name == "":
		c.fail(badTag, at, "a tag's name must not be empty")
	case o.GetOperation() == telemetry.MetricsOverrides_TagOverride_UPSERT && o.GetValue() == "":
		c.fail(badTag, at.field("value"), "%s must be set when operation is UPSERT", subject)
	case o.GetOperation() == telemetry.MetricsOverrides_TagOverride_REMOVE && o.GetValue() != "":
		c.fail(badTag, at.field("value"), "%s must not be set when operation is REMOVE", subject)
	}
}
