//! JSON checked against a JSON schema.

use serde_json::{Map, Value, json};

/// The least of a validator: it knows the keywords that our schemas use and panics at any other.
pub fn validate(root: &Value, value: &Value) -> Result<(), String> {
    Validator { definitions: &root["$defs"] }.check(root, value, "")
}

struct Validator<'a> {
    definitions: &'a Value,
}

impl Validator<'_> {
    fn check(&self, schema: &Value, value: &Value, place: &str) -> Result<(), String> {
        let Some(rules) = schema.as_object() else { return Ok(()) };
        rules.iter().try_for_each(|(keyword, rule)| {
            let holds = self.keyword(rules, keyword, rule, value, place)?;
            if holds { Ok(()) } else { Err(format!("{place}: {value} against {keyword} {rule}")) }
        })
    }

    fn keyword(
        &self,
        rules: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        value: &Value,
        place: &str,
    ) -> Result<bool, String> {
        let list = || rule.as_array().unwrap();
        let matching = || list().iter().filter(|rule| self.check(rule, value, place).is_ok()).count();
        Ok(match keyword {
            "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                self.check(&self.definitions[name], value, place)?;
                true
            }
            "type" => has_type(rule, value),
            "const" => rule == value,
            "enum" => list().contains(value),
            "oneOf" => matching() == 1,
            "anyOf" => matching() > 0,
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
            "required" => list().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "properties" => {
                let fields = rule.as_object().unwrap().iter();
                let mut present = fields.filter_map(|(name, rule)| Some((name, rule, value.get(name)?)));
                present.try_for_each(|(name, rule, value)| {
                    self.check(rule, value, &format!("{place}/{name}"))
                })?;
                true
            }
            "additionalProperties" => {
                let known = |name: &String| rules["properties"].get(name).is_some();
                rule == &json!(false) && value.as_object().is_none_or(|fields| fields.keys().all(known))
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|item| self.check(rule, item, place))?;
                true
            }
            "prefixItems" => {
                let mut pairs = value.as_array().into_iter().flatten().zip(list());
                pairs.try_for_each(|(item, rule)| self.check(rule, item, place))?;
                true
            }
            other => panic!("{place}: this validator does not know {other}"),
        })
    }
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("this validator does not know the type {other}"),
    };
    match rule {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}
