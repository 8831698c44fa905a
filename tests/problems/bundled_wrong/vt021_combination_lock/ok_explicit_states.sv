// Right: a state register with explicit states and a timer that counts up.
module TopModule (
  input  logic       clk,
  input  logic       reset,
  input  logic       enter,
  input  logic [3:0] digit,
  input  logic       relock,
  output logic       unlocked,
  output logic       alarm,
  output logic [1:0] progress
);

  localparam [2:0] S0 = 0, S1 = 1, S2 = 2, OPEN = 3, ALARM = 4;

  reg [2:0] state;
  reg [2:0] errors;
  reg [3:0] cycles;
  reg       good;

  always @* begin
    good = 1'b0;
    if (state == S0) good = (digit == 3);
    if (state == S1) good = (digit == 8);
    if (state == S2) good = (digit == 1);
  end

  always @(posedge clk)
    if (reset) begin
      state <= S0;
      errors <= 3'b001;
    end else begin
      case (state)
        OPEN: if (relock) state <= S0;
        ALARM: begin
          cycles <= cycles + 1;
          if (cycles == 9) state <= S0;
        end
        default: if (enter) begin
          if (good) begin
            state <= state + 1;
            if (state == S2) errors <= 3'b001;
          end else begin
            errors <= {errors[1:0], errors[2]};
            cycles <= 0;
            state <= errors[2] ? ALARM : S0;
          end
        end
      endcase
    end

  assign unlocked = (state == OPEN);
  assign alarm = (state == ALARM);
  assign progress = state[1:0] & {2{~unlocked & ~alarm}};

endmodule
