from cronring.schema.module import DataField, DataType
from cronring.schema.records import records_of

ADDRESS = DataType("Address", (DataField("city", "str"),))
ORDER = DataType("Order", (DataField("to", "list[Address]"), DataField("next", "Order | None", True)))
OTHER = DataType("Other")


def test_records_within_records_are_found_once_and_others_are_not():
    types = (ADDRESS, OTHER, ORDER)
    assert records_of("dict[str, Order]", types) == [ORDER, ADDRESS]
    assert records_of("Address | None", types) == [ADDRESS]
    assert records_of("int", types) == []
    assert records_of("Unit", types) == []
