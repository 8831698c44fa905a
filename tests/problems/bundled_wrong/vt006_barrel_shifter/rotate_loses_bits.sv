// Wrong: rotating left drops the bits that leave.
module TopModule (
  input  logic [15:0] data,
  input  logic [3:0]  amount,
  input  logic [1:0]  mode,
  output logic [15:0] out
);

  wire [31:0] twice = {data, data};
  wire [31:0] left  = twice << amount;
  wire [31:0] right = twice >> amount;
  wire [31:0] wide  = {{16{data[15]}}, data} >> amount;

  assign out = (mode == 2'd0) ? data << amount
             : (mode == 2'd1) ? right[15:0]
             : (mode == 2'd2) ? data >> amount
                              : wide[15:0];

endmodule
