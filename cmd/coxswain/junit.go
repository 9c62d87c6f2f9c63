package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// junitSuites are several reports in one file.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

// junitSuite is a report as CI systems read it.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func writeJUnit(file, plugin string, all []plugintest.Result) error {
	s := junitSuite{Name: plugin, Tests: len(all)}
	for _, r := range all {
		c := junitCase{Class: "coxswain." + r.Carrier, Name: r.Case, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
		switch {
		case len(r.Failures) > 0:
			s.Failures++
			first, _, _ := strings.Cut(r.Failures[0], "\n")
			c.Failure = &junitMessage{Message: first, Text: strings.Join(r.Failures, "\n")}
		case r.Skipped != "":
			s.Skipped++
			c.Skipped = &junitMessage{Message: r.Skipped}
		}
		s.Cases = append(s.Cases, c)
	}
	return writeXML(file, s)
}

func writeXML(file string, report any) error {
	text, err := xml.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(text, '\n')...), 0o666)
}
